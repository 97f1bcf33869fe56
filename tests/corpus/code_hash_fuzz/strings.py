"""Every kind of string, and what may stand beside one."""
a = r'\d' b"\x00" u'ä' Rb'''x
y'''
b = f"{a!r:>{len(a)}} {{ {'x' if a else "y"} \N{BULLET} {a['k']:%H:%M}"
c = f'''{a + # comment
1}''' + rf"\{a}" 'cont\
inued'
if a: b = """ # no comment
""" ; c = 1_0.5e-3j
