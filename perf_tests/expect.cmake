# SPDX-License-Identifier: Apache-2.0
# Runs a command and checks what add_test cannot check together: its exit status, what it prints, and a JSON file.
#
#   cmake -Dstatus=2 -Doutput=REGEX [-Djson=FILE -Djson_path="key index ..."] -P expect.cmake -- COMMAND ARGUMENTS...
#
# The path is that of a value which the file must have.
set(command "")
set(is_command FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(k RANGE ${last})
  if(is_command)
    list(APPEND command "${CMAKE_ARGV${k}}")
  elseif(CMAKE_ARGV${k} STREQUAL "--")
    set(is_command TRUE)
  endif()
endforeach()

if(json)
  file(REMOVE "${json}")
endif()
execute_process(COMMAND ${command} RESULT_VARIABLE got_status OUTPUT_VARIABLE text ERROR_VARIABLE errors)
message("${text}${errors}")
if(NOT got_status STREQUAL status)
  message(FATAL_ERROR "exit status ${got_status}, expected ${status}")
endif()
if(NOT "${text}${errors}" MATCHES "${output}")
  message(FATAL_ERROR "nothing printed matches: ${output}")
endif()
if(json)
  file(READ "${json}" text)
  separate_arguments(json_path)
  string(JSON value ERROR_VARIABLE error GET "${text}" ${json_path})
  if(error)
    message(FATAL_ERROR "${json}: ${error}")
  endif()
endif()
