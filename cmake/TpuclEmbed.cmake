# SPDX-License-Identifier: Apache-2.0
# tpucl_embed(OUTPUT <file.c> SYMBOL <name> ROOT <dir> FILES <relative paths>): writes a C table of byte
# arrays, one per file, so that the library carries its kernels and configurations. Byte arrays and not
# string literals, because C guarantees only 4095 characters for those.
set(TPUCL_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)
function(tpucl_embed)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT;SYMBOL;ROOT" "FILES")
    set(_inputs ${arg_FILES})
    list(TRANSFORM _inputs PREPEND ${arg_ROOT}/)
    string(REPLACE ";" "," _names "${arg_FILES}")
    add_custom_command(OUTPUT ${arg_OUTPUT}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${arg_OUTPUT} -DSYMBOL=${arg_SYMBOL} -DROOT=${arg_ROOT}
                -DFILES=${_names} -P ${TPUCL_EMBED_SCRIPT}
        DEPENDS ${_inputs} ${TPUCL_EMBED_SCRIPT} COMMENT "embedding ${arg_SYMBOL}" VERBATIM)
    # tpucl_objects is made in another folder, which does not see this folder's rules.
    add_custom_target(embed_${arg_SYMBOL} DEPENDS ${arg_OUTPUT})
    add_dependencies(tpucl_objects embed_${arg_SYMBOL})
endfunction()
