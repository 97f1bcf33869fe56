// Stands in for <torch/types.h>.
#pragma once
#include <kernelbench_lean.h>
