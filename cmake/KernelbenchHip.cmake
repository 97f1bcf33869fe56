# The device for NVIDIA's cards, compiled as HIP for AMD's: src/device/cuda/as_hip says what differs.
# It is compiled, no more: no program is linked with it, and it has never run.
#
#   KERNELBENCH_HIP                 OFF
#   KERNELBENCH_HIP_ARCHITECTURES   gfx90a;gfx942
#
# ROCM_PATH names the SDK (HIP 6.4 or later), else /opt/rocm.
option(KERNELBENCH_HIP "Compile src/device/cuda as HIP as well (library device_hip)" OFF)
if(KERNELBENCH_HIP)
  set(KERNELBENCH_HIP_ARCHITECTURES gfx90a gfx942 CACHE STRING "For what hipcc compiles kernels")
  find_program(KERNELBENCH_HIPCC hipcc REQUIRED PATHS $ENV{ROCM_PATH}/bin /opt/rocm/bin)
  find_path(KERNELBENCH_HIP_INCLUDE hip/hip_runtime_api.h REQUIRED
            PATHS $ENV{ROCM_PATH}/include /opt/rocm/include)
  mark_as_advanced(KERNELBENCH_HIPCC KERNELBENCH_HIP_INCLUDE)
endif()

# Adds the library device_hip, where it is asked for.
function(kb_device_hip)
  if(NOT KERNELBENCH_HIP)
    return()
  endif()
  set(folder "${PROJECT_SOURCE_DIR}/src/device/cuda")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/as_hip/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(REMOVE_ITEM sources "${folder}/look_up_driver.cpp")
  file(GLOB kernels CONFIGURE_DEPENDS "${folder}/*.cu")
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h" "${folder}/as_hip/*.h")
  list(TRANSFORM KERNELBENCH_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE architectures)
  foreach(kernel IN LISTS kernels)
    get_filename_component(name "${kernel}" NAME_WE)
    set(object "${PROJECT_BINARY_DIR}/device_hip/${name}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/device_hip"
      COMMAND "${KERNELBENCH_HIPCC}" -x hip -std=c++20 -O3 -fPIC ${architectures}
              "-I${folder}/as_hip" "-I${PROJECT_SOURCE_DIR}/src" -c "${kernel}" -o "${object}"
      DEPENDS "${kernel}" ${headers}
      COMMENT "Building HIP object device_hip/${name}.o"
      VERBATIM)
    list(APPEND sources "${object}")
  endforeach()
  add_library(device_hip STATIC ${sources})
  target_link_libraries(device_hip PUBLIC kb_base Threads::Threads nlohmann_json::nlohmann_json fmt::fmt
                                          device device_cpu)
  target_compile_definitions(device_hip PRIVATE __HIP_PLATFORM_AMD__)
  target_include_directories(device_hip BEFORE PRIVATE "${folder}/as_hip")
  target_include_directories(device_hip SYSTEM PRIVATE "${KERNELBENCH_HIP_INCLUDE}")
  # HIP's functions are nodiscard where CUDA's are not.
  target_compile_options(device_hip PRIVATE -Wno-unused-result)
endfunction()
