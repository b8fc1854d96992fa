# SPDX-License-Identifier: Apache-2.0
# add_program_test(NAME STATUS OUTPUT TARGET ARGUMENTS...): a test that the program exits with STATUS and that what it
# prints matches the regular expression OUTPUT. CTest itself looks at either of them, not at both, so this file is also
# the script that runs the program.
if(CMAKE_SCRIPT_MODE_FILE)
  # cmake -P add_program_test.cmake -- STATUS OUTPUT PROGRAM ARGUMENTS...
  set(expected_status "${CMAKE_ARGV4}")
  set(expected_output "${CMAKE_ARGV5}")
  set(command)
  math(EXPR last "${CMAKE_ARGC} - 1")
  foreach(i RANGE 6 ${last})
    list(APPEND command "${CMAKE_ARGV${i}}")
  endforeach()
  execute_process(
    COMMAND ${command}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output
  )
  message("${output}")
  if(NOT status STREQUAL expected_status)
    message(FATAL_ERROR "The exit status is ${status}, expected ${expected_status}.")
  endif()
  if(NOT output MATCHES "${expected_output}")
    message(FATAL_ERROR "The output does not match \"${expected_output}\".")
  endif()
else()
  set(BELLMAN_PROGRAM_TEST_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(add_program_test name status output target)
    add_test(
      NAME ${name} COMMAND ${CMAKE_COMMAND} -P ${BELLMAN_PROGRAM_TEST_SCRIPT} -- ${status} ${output}
                           $<TARGET_FILE:${target}> ${ARGN}
    )
  endfunction()
endif()
