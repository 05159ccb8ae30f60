"""What a source may use of C's headers, without an include as with nvcc, which reads them of the host: a text of ours.

Names of integers by their width, limits, M_PI. The compiler is given it and empty headers of C's names, so that no file
of this machine is read for them.
"""

from __future__ import annotations

from collections.abc import Mapping

PRELUDE = "labkit_prelude.h"

_TEXT = """
#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
typedef long long intptr_t;
typedef unsigned int uint;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define M_PI 3.14159265358979323846
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#ifndef NULL
#define NULL 0
#endif
"""

IN_IT = ("stdint.h", "cstdint", "float.h", "cfloat", "limits.h", "climits", "stddef.h", "cstddef")
"""C's headers of which the prelude has what kernels need: including one is allowed, and does nothing more."""

MEMORY_HEADERS: Mapping[str, str] = {PRELUDE: _TEXT, **dict.fromkeys(IN_IT, "")}
"""By name, for `nvrtc.compile_source`."""
