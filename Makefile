# Everything here is a short name for something longer; scripts/setup does the set-up.
# PYTHON=/path/to/python uses that Python (PyTorch 2.9 or later) in place of .venv,
# CUDA_HOME=/path/to/toolkit that CUDA toolkit (12.4 or later).
.PHONY: demo build setup-dsl test format lint asan clean help
.DEFAULT_GOAL := help
export PYTHON

sources = $(shell find src include tests bench cmake -name '*.h' -o -name '*.cpp')

demo: build  ## judge the bundled kernels on this machine's CPU and score them
	build/release/kernelbench run examples/run_cpu --size small --first-call-timeout 10 $(if $(PYTHON),--python $(PYTHON))
	build/release/kernelbench score examples/run_cpu --html build/demo.html

build:  ## install what is missing, and build into build/release
	@scripts/setup

setup-dsl: build  ## add the optional Python languages: CuTe, TileLang, CuPy, Helion, cuTile
	@scripts/setup-dsl

test: build  ## run every test
	@scripts/test

format:  ## format the C++ sources in place
	@clang-format -i $(sources)

lint: build  ## check the C++ sources with clang-format and clang-tidy
	@scripts/lint

asan:  ## build with AddressSanitizer and UBSan, and run the unit tests
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan

clean:  ## remove the build folders, not .venv
	rm -rf build

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' Makefile | expand -t 10
