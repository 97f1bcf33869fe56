// Stands in for <torch/extension.h>.
#pragma once
#include <kernelbench_lean.h>
