#include "hip.h"
