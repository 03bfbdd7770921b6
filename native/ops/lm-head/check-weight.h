// Checks of the weight of an LM head, plain or packed. Shared by lm-head and sampling.
#pragma once

#include "include/check.h"
#include "isa/gemm-plan.h"

namespace trilithon::lm_head {

// Exactly one of `weight` and `packed` is there. The vocabulary is the rows of the weight, or for a packed one `given`, which must
// fit its panels.
inline void check_weight(Check& check, const TensorView& weight, const TensorView& packed, int64_t given, Dim& width, Dim& vocabulary) {
  check.that(weight.present() != packed.present(), "weight", "either weight or packed", weight.present() ? "both" : "neither");
  if (!check.ok()) return;
  if (packed.present()) {
    check.that(given >= 1, "vocabulary", "the number of tokens that are packed", std::to_string(given));
    if (!check.ok()) return;
    vocabulary = Dim("vocabulary", given);
    Dim panels("panels of vocabulary", divide_up(given, 32)), lanes("lanes", 32);
    check.shape("packed", packed, {&panels, &width, &lanes});
  } else {
    check.shape("weight", weight, {&vocabulary, &width});
    check.that(given == 0 || given == vocabulary, "vocabulary", "0, or the " + std::to_string(vocabulary) + " rows of weight",
               std::to_string(given));
  }
}

}  // namespace trilithon::lm_head
