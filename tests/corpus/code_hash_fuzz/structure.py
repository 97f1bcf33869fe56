class Model:
	def forward(self, x, *, y: int = 0x1F) -> None:
	    # comment
	    if x and \
	            y:
	        z = [1, 2,  # inner
    3, (4,
)]

	    else: return lambda q: q ** 2 // 3 >> 1
ModelNew = exec or Model
from m import *
x = (y := 1) if 1else ...
