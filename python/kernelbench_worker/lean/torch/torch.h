// Stands in for <torch/torch.h>.
#pragma once
#include <kernelbench_lean.h>
