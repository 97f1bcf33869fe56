// Stands in for <ATen/ATen.h>.
#pragma once
#include <kernelbench_lean.h>
