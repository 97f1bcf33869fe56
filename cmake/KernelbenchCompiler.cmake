# The compiler, its warnings and its sanitizers; and the target kb_base, which carries what every
# target of ours is compiled with.

# By the header and not by the version: Ubuntu 22.04 without its updates has a g++ 12 from before it.
include(CheckIncludeFileCXX)
set(CMAKE_REQUIRED_FLAGS -std=c++23)
check_include_file_cxx(expected KERNELBENCH_HAS_EXPECTED)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT KERNELBENCH_HAS_EXPECTED)
  unset(KERNELBENCH_HAS_EXPECTED CACHE)
  message(FATAL_ERROR
    "kernelbench needs std::expected, which ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} does "
    "not have: install or update the package g++-12 (or later) and try again with CXX=g++-12.")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(KERNELBENCH_CCACHE ccache)
if(KERNELBENCH_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${KERNELBENCH_CCACHE}")
endif()

add_library(kb_base INTERFACE)
target_include_directories(kb_base INTERFACE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated")
configure_file("${PROJECT_SOURCE_DIR}/cmake/version.h.in"
               "${PROJECT_BINARY_DIR}/generated/version.h" @ONLY)

# nvcc's own glue code is not up to the C++ warnings.
target_compile_options(kb_base INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:\
-Wall;-Wextra;-Wpedantic;-Wshadow;-Wformat=2;-Wundef;-Wvla;-Wcast-qual;-Wextra-semi;\
-Wnon-virtual-dtor;-Woverloaded-virtual;-Wredundant-move>"
  # g++ gives this one for designated initializers too, where leaving out members is the point.
  "$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kb_base INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wduplicated-cond;-Wlogical-op>")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 warns falsely about std::string's operator+ at -O2 (GCC bug 105329).
    target_compile_options(kb_base INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  # libstdc++ hides std::expected from clang before 19, which implements enough of concepts for it.
  target_compile_options(kb_base INTERFACE
    -Wno-builtin-macro-redefined -Wno-macro-redefined -D__cpp_concepts=202002L)
endif()
if(KERNELBENCH_WERROR)
  target_compile_options(kb_base INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()

if(KERNELBENCH_SANITIZE)
  target_compile_options(kb_base INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:\
-fsanitize=${KERNELBENCH_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(kb_base INTERFACE -fsanitize=${KERNELBENCH_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code misleads g++'s flow-based warnings.
    target_compile_options(kb_base INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:\
-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-tsan>")
  endif()
endif()

if(KERNELBENCH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    message(FATAL_ERROR "kernelbench needs clang 16 or later for KERNELBENCH_FUZZ=ON: install the "
      "packages clang-16 and libclang-rt-16-dev, configure a fresh build folder with CXX=clang++-16.")
  endif()
  target_compile_options(kb_base INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  target_link_options(kb_base INTERFACE -fsanitize=address,undefined)
endif()
