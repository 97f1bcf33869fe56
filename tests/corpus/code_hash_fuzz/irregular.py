if x:
 \
  y
	z # ä