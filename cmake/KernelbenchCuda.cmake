# CUDA is compiled whenever nvcc is there. KERNELBENCH_CUDA says whether it is; the program that comes
# of it runs on machines without a driver too (the runtime is linked statically and looks for the
# driver when it is first used).
option(KERNELBENCH_WITHOUT_CUDA "Leave the CUDA parts out even where nvcc is found" OFF)
set(kb_oldest_cuda 12.4)
set(KERNELBENCH_CUDA OFF)
if(KERNELBENCH_WITHOUT_CUDA OR KERNELBENCH_SANITIZE MATCHES "thread")
  set(kb_no_cuda "so it was asked")
else()
  # The one that candidates are compiled with (src/build/nvcc.cpp), if none is named: by CUDACXX, or
  # by -DCMAKE_CUDA_COMPILER.
  if(NOT "$ENV{CUDACXX}" STREQUAL "")
    find_program(CMAKE_CUDA_COMPILER "$ENV{CUDACXX}")
  else()
    find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  endif()
  # Before CMake tries it: an older one may not take the C++ compiler that kernelbench needs.
  set(kb_cuda_version "")
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version OUTPUT_VARIABLE kb_cuda_words
                    RESULT_VARIABLE kb_failed ERROR_QUIET)
    if(kb_cuda_words MATCHES "release ([0-9]+\\.[0-9]+)")
      set(kb_cuda_version "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(kb_no_cuda "nvcc was not found")
  elseif(kb_cuda_version VERSION_GREATER_EQUAL kb_oldest_cuda)
    set(KERNELBENCH_CUDA ON)
  else()
    set(kb_no_cuda "${CMAKE_CUDA_COMPILER} is not nvcc ${kb_oldest_cuda} or later")
    unset(CMAKE_CUDA_COMPILER CACHE)  # the next configuration looks again
  endif()
  if(NOT "$ENV{CUDACXX}" STREQUAL "" AND NOT KERNELBENCH_CUDA)
    message(FATAL_ERROR "kernelbench needs nvcc ${kb_oldest_cuda} or later, and CUDACXX names $ENV{CUDACXX}.")
  endif()
endif()

if(KERNELBENCH_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Ampere and Hopper as machine code, the rest from PTX.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake before 3.26 does not know that nvcc has C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  message(STATUS "CUDA ${kb_cuda_version}: ${CMAKE_CUDA_COMPILER}")
else()
  message(STATUS "kernelbench is built without its CUDA parts: ${kb_no_cuda}")
endif()
