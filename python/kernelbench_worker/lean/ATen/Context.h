// <ATen/Context.h>, which every header of an operator includes and few sources use, for those alone.
#pragma once
#ifdef KERNELBENCH_LEAN_CONTEXT
#include_next <ATen/Context.h>
#endif
