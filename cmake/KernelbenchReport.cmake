# What the HTML report carries inside the program: our page, and two libraries that Debian packages.

# Sets OUT to the path of a script, which the Debian package DEBIAN brings.
function(kb_find_script out debian folder)
  find_file(${out} NAMES ${ARGN} PATHS /usr/share /usr/local/share PATH_SUFFIXES ${folder}
            NO_DEFAULT_PATH)
  mark_as_advanced(${out})
  if(NOT ${out})
    list(GET ARGN 0 name)
    kb_missing_package(${name} ${debian})
  endif()
endfunction()

# Compiles the assets into a library.
function(kb_embed_report_assets library)
  set(assets "${PROJECT_SOURCE_DIR}/src/report/assets")
  set(generated "${PROJECT_BINARY_DIR}/generated/report")
  kb_find_script(KERNELBENCH_CHART_JS libjs-chart.js javascript/chart.js chart.min.js Chart.min.js)
  # Prism and its languages in one file, in the order in which they build on each other.
  set(prism "window.Prism = {manual: true};\n")
  foreach(part core clike c cpp python)
    kb_find_script(KERNELBENCH_PRISM_${part} node-prismjs nodejs/prismjs/components
                   prism-${part}.min.js)
    file(READ "${KERNELBENCH_PRISM_${part}}" text)
    string(APPEND prism "${text}\n")
  endforeach()
  file(CONFIGURE OUTPUT "${generated}/prism.js" CONTENT "${prism}" @ONLY)

  set(kb_asset_page "${assets}/page.html")
  set(kb_asset_style "${assets}/page.css")
  set(kb_asset_code "${assets}/page.js")
  set(kb_asset_licenses "${assets}/licenses.txt")
  set(kb_asset_chart "${KERNELBENCH_CHART_JS}")
  set(kb_asset_prism "${generated}/prism.js")
  configure_file("${assets}/assets.cpp.in" "${generated}/assets.cpp" @ONLY)
  set_source_files_properties("${generated}/assets.cpp" PROPERTIES OBJECT_DEPENDS
    "${kb_asset_page};${kb_asset_style};${kb_asset_code};${kb_asset_licenses};${kb_asset_chart};${kb_asset_prism}")
  target_sources(${library} PRIVATE "${generated}/assets.cpp")
endfunction()
