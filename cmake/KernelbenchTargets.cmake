# What a folder of sources becomes.
#
#   src/x/*.cpp          library x (with CUDA: *.cu as well)
#   src/x/*_test.cpp     GoogleTest program x_test, CTest label `unit`
#   src/x/*_fuzz.cpp     one fuzz target each; without libFuzzer a program over random mutations
#   src/x/*_main.cpp     nothing: kb_program names these one by one
#   tests/*_test.cpp     one GoogleTest program each, label `integration`
#   tests/*_test.py      one unittest run each, label `integration`
#   bench/*_bench.cpp    one Google Benchmark program each, not a test
#
# A test file whose name ends in _gpu_test, _browser_test or _slow_test gets that label too.
# An empty folder is an empty library.

include(GoogleTest)
if(KERNELBENCH_TESTS)
  enable_testing()
endif()

# kb_library(NAME FOLDER [BARE] [GPU] [SOURCES file...] [DEPENDS target...])
# SOURCES adds files from elsewhere. BARE leaves out fmt, which all others share. GPU: its tests use a
# GPU where there is one, and get that label.
function(kb_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "BARE;GPU" "" "SOURCES;DEPENDS")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
  if(KERNELBENCH_CUDA)
    file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cu")
    list(APPEND sources ${cuda_sources})
  endif()
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|main)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")

  if(sources AND arg_SOURCES)
    list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/")
    list(APPEND sources ${arg_SOURCES})
  endif()

  set(common kb_base kb_dlpack Threads::Threads nlohmann_json::nlohmann_json)
  if(NOT arg_BARE)
    list(APPEND common fmt::fmt)
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${common} ${arg_DEPENDS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${common} ${arg_DEPENDS})
  endif()

  if(KERNELBENCH_TESTS AND tests)
    set(label unit)
    if(arg_GPU)
      set(label "unit gpu")
    endif()
    kb_add_gtest(${name}_test "${label}" ${name} ${tests})
  endif()
  foreach(fuzzer IN LISTS fuzzers)
    kb_add_fuzzer(${name} "${fuzzer}")
  endforeach()
endfunction()

# Adds a compile definition to a library made by kb_library, private to it.
function(kb_define name)
  get_target_property(type ${name} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_compile_definitions(${name} PRIVATE ${ARGN})
  endif()
endfunction()

# Adds compile options to a library made by kb_library, private to it.
function(kb_compile_options name)
  get_target_property(type ${name} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_compile_options(${name} PRIVATE ${ARGN})
  endif()
endfunction()

# kb_program(NAME MAIN [DEPENDS target...])
# Makes the program NAME, at the top of the build folder, from the one file MAIN, if it exists.
function(kb_program name main)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "DEPENDS")
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${main}")
  if(NOT found)
    message(STATUS "${main} does not exist yet: no program ${name}")
    return()
  endif()
  add_executable(${name} ${found})
  target_link_libraries(${name} PRIVATE kb_base ${arg_DEPENDS} ${CMAKE_DL_LIBS})
endfunction()

# Sets LABELS to LABEL and what the name of FILE asks for.
function(kb_labels out label file)
  set(labels ${label})
  if(file MATCHES "_(gpu|browser|slow)_test\\.(cpp|py)$")
    list(APPEND labels ${CMAKE_MATCH_1})
  endif()
  set(${out} ${labels} PARENT_SCOPE)
endfunction()

# Makes the GoogleTest program NAME. Unit tests are known to CTest case by case (the cases are read from
# the program when ctest starts, so that a build never runs what it has built); an integration
# test is one entry, because its cases share a set-up that takes a while. The program knows the source
# folder as KERNELBENCH_SOURCE_DIR.
function(kb_add_gtest name label library)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${library} GTest::gmock_main GTest::gtest)
  target_compile_definitions(${name} PRIVATE KERNELBENCH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(label MATCHES "^unit")
    # A list would not survive the trip through gtest_discover_tests' script: CTest takes a bracket
    # argument with an escaped semicolon as one, so the labels are joined here.
    string(REPLACE " " "\\;" labels "${label}")
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      TEST_PREFIX "${name}/" PROPERTIES LABELS "${labels}" TIMEOUT 120)
  else()
    list(GET ARGN 0 first)
    kb_labels(labels ${label} "${first}")
    add_test(NAME ${name} COMMAND ${name})
    # Integration tests time kernels: nothing else may run beside them.
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1200 RUN_SERIAL TRUE
      ENVIRONMENT "KERNELBENCH_PYTHON=${KERNELBENCH_PYTHON}")
  endif()
endfunction()

# Makes one fuzz target of FILE, which defines LLVMFuzzerTestOneInput.
function(kb_add_fuzzer library file)
  get_filename_component(stem "${file}" NAME_WE)
  set(name ${library}_${stem})
  if(KERNELBENCH_FUZZ)
    add_executable(${name} "${file}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(KERNELBENCH_TESTS)
    add_executable(${name} "${file}" "${PROJECT_SOURCE_DIR}/cmake/fuzz_driver.cpp")
    # The seeds: tests/corpus/<stem>/, where there is one.
    file(GLOB corpus CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/corpus/${stem}/*")
    add_test(NAME fuzz/${name} COMMAND ${name} --runs=20000 --seed=1 ${corpus})
    set_tests_properties(fuzz/${name} PROPERTIES LABELS unit TIMEOUT 120)
  else()
    return()
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  target_link_libraries(${name} PRIVATE ${library})
endfunction()

# kb_integration_tests(FOLDER DEPENDS target...)
# Each program knows the tested binary as KERNELBENCH_BINARY and finds the Python with PyTorch in the
# environment variable KERNELBENCH_PYTHON.
function(kb_integration_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS")
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*_test.cpp")
  if(NOT KERNELBENCH_TESTS OR NOT TARGET kernelbench)
    return()
  endif()
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    kb_add_gtest(${name} integration "${arg_DEPENDS}" "${file}")
    target_compile_definitions(${name} PRIVATE KERNELBENCH_BINARY="$<TARGET_FILE:kernelbench>")
    add_dependencies(${name} kernelbench)
  endforeach()
endfunction()

# kb_python_tests(FOLDER...)
function(kb_python_tests)
  foreach(folder IN LISTS ARGN)
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*_test.py")
    if(NOT KERNELBENCH_TESTS)
      return()
    endif()
    foreach(file IN LISTS files)
      get_filename_component(stem "${file}" NAME_WE)
      kb_labels(labels integration "${file}")
      add_test(NAME python/${stem} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        COMMAND "${KERNELBENCH_PYTHON}" -B -m unittest discover -v -s ${folder} -p ${stem}.py)
      set_tests_properties(python/${stem} PROPERTIES LABELS "${labels}" TIMEOUT 900
        RUN_SERIAL TRUE ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/python;\
KERNELBENCH_BINARY=${PROJECT_BINARY_DIR}/kernelbench;\
KERNELBENCH_SOURCE_DIR=${PROJECT_SOURCE_DIR};KERNELBENCH_PYTHON=${KERNELBENCH_PYTHON}")
    endforeach()
  endforeach()
endfunction()

# kb_benchmarks(FOLDER DEPENDS target...)
function(kb_benchmarks folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS")
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*_bench.cpp")
  if(NOT KERNELBENCH_BENCH OR NOT TARGET benchmark::benchmark)
    return()
  endif()
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    add_executable(${name} "${file}")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
    target_link_libraries(${name} PRIVATE ${arg_DEPENDS} benchmark::benchmark)
    target_compile_definitions(${name} PRIVATE KERNELBENCH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()
