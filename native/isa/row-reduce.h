// Reduction of one row to one number, in the order that every op of the fp32 profile uses for it.
//
// Element i goes to chain (i / 16) mod 4, lane i mod 16. Each lane of a chain takes its elements in ascending order. At the
// end the chains are combined as (0 + 1) + (2 + 3), lane by lane, and the sixteen lanes by the tree of `sum`. The order
// depends on the length of the row and on nothing else.
#pragma once

#include "isa/vec.h"

KERNELS_BEGIN

// `step(accumulator, index, count)` returns the accumulator with elements [index, index + count) added, count <= 16, using
// load_n so that missing lanes contribute what leaves the accumulator as it is.
template <typename Step>
TRILITHON_INLINE float row_sum(int64_t length, Step step) {
  F chain0 = zero(), chain1 = zero(), chain2 = zero(), chain3 = zero();
  int64_t i = 0;
  for (; i + 64 <= length; i += 64) {
    chain0 = step(chain0, i, 16);
    chain1 = step(chain1, i + 16, 16);
    chain2 = step(chain2, i + 32, 16);
    chain3 = step(chain3, i + 48, 16);
  }
  const auto count = [length](int64_t from) { return length - from < 16 ? length - from : int64_t{16}; };
  if (i < length) chain0 = step(chain0, i, count(i));
  if (i + 16 < length) chain1 = step(chain1, i + 16, count(i + 16));
  if (i + 32 < length) chain2 = step(chain2, i + 32, count(i + 32));
  if (i + 48 < length) chain3 = step(chain3, i + 48, count(i + 48));
  return sum(add(add(chain0, chain1), add(chain2, chain3)));
}

// Calls f(index, count) for 16 elements at a time, the last time perhaps for fewer.
template <typename Body>
TRILITHON_INLINE void for_lanes(int64_t length, Body body) {
  int64_t i = 0;
  for (; i + 16 <= length; i += 16) body(i, 16);
  if (i < length) body(i, length - i);
}

KERNELS_END
