// Stands in for <ATen/DeviceGuard.h>, which the header of every operator includes and few sources use.
#pragma once
#ifdef KERNELBENCH_LEAN_DEVICE_GUARD
#include_next <ATen/DeviceGuard.h>
#endif
