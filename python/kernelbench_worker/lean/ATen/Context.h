// Stands in for <ATen/Context.h>, which the header of every operator includes and few sources use.
#pragma once
#ifdef KERNELBENCH_LEAN_CONTEXT
#include_next <ATen/Context.h>
#endif
