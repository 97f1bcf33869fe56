// <ATen/DeviceGuard.h>, which every header of an operator includes and few sources use, for those alone.
#pragma once
#ifdef KERNELBENCH_LEAN_DEVICE_GUARD
#include_next <ATen/DeviceGuard.h>
#endif
