// Stands in for <torch/all.h>.
#pragma once
#include <kernelbench_lean.h>
