#pragma once

#include <algorithm>
#include <limits>

#include "harness/execute.h"

namespace trilithon::moe_router {

// Distinct experts in each row, in any order.
inline Fill distinct(int64_t experts) {
  return {[experts](std::vector<double>& values, const std::vector<int64_t>& shape, Random& random) {
    std::vector<double> all(static_cast<size_t>(experts));
    for (size_t i = 0; i < values.size(); i += static_cast<size_t>(shape[1])) {
      for (size_t e = 0; e < all.size(); ++e) all[e] = static_cast<double>(e);
      for (size_t slot = 0; slot < static_cast<size_t>(shape[1]); ++slot) {
        std::swap(all[slot], all[slot + static_cast<size_t>(random.below(experts - static_cast<int64_t>(slot)))]);
        values[i + slot] = all[slot];
      }
    }
  }};
}

// What was chosen, given back, chooses and weighs the same; a row that is missing chooses for itself only when that is allowed.
inline std::string check_replay(const PropertyContext& context, DType type) {
  const Outcome chosen = context.run(context.data);
  CaseData replay = context.data;
  TensorSpec given = context.data.tensors.front();
  for (const TensorSpec& spec : context.data.tensors) {
    if (spec.name == "ids") given = spec;
  }
  given.name = "given";
  replay.tensors.push_back(given);
  replay.values["given"] = chosen.values("ids");
  const auto differs = [&](const CaseData& data) {
    const Outcome outcome = context.run(data);
    for (const char* name : {"ids", "weights"}) {
      const std::string difference = compare_bits(outcome[name], chosen[name]);
      if (!difference.empty()) return difference;
    }
    return std::string();
  };
  if (const std::string difference = differs(replay); !difference.empty()) return difference;

  const int64_t top_k = given.shape[1];
  const double missing = type == DType::u8 ? 255 : type == DType::u16 ? 65535 : -1;
  for (int64_t slot = 0; slot < top_k; ++slot) replay.values["given"][static_cast<size_t>(slot)] = missing;
  if (context.refusal(replay).find("given a missing row (all bits set) for token 0") == std::string::npos) return "a missing row was taken";
  replay.scalars["select_missing"] = 1;
  return differs(replay);
}

inline void add_softmax_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, experts, top_k;
    DType type;
  };
  for (const Size s : {Size{1, 4, 2, DType::u8},
                       {3, 17, 17, DType::i32},
                       {7, 60, 6, DType::u16},
                       {5, 128, 8, DType::u8},
                       {4, 512, 22, DType::u16},
                       {6, 256, 3, DType::u8},
                       {2, 16, 1, DType::i32}}) {
    for (const bool renormalise : {false, true}) {
      const std::string label = size_label({s.tokens, s.experts, s.top_k}) + (renormalise ? " renormalised" : "");
      cases.add("moe-router.softmax-forward", label)
          .input("logits", {s.tokens, s.experts}, Fill::normal(0, 2))
          .output("ids", {s.tokens, s.top_k}, s.type)
          .output("weights", {s.tokens, s.top_k})
          .flag("renormalise", renormalise)
          .flag("select_missing", false)
          .rows({"logits", "ids", "weights"})
          .tolerance(1e-6)
          .property("replay", [s](const PropertyContext& context) { return check_replay(context, s.type); });
      cases.add("moe-router.softmax-forward", label + " given")
          .input("logits", {s.tokens, s.experts})
          .input("given", {s.tokens, s.top_k}, distinct(s.experts), s.type)
          .output("ids", {s.tokens, s.top_k}, DType::i32)
          .output("weights", {s.tokens, s.top_k})
          .flag("renormalise", renormalise)
          .flag("select_missing", false)
          .rows({"logits", "given", "ids", "weights"})
          .tolerance(1e-6)
          .gradient("moe-router.softmax-backward", {"logits"});
      cases.add("moe-router.softmax-backward", label)
          .input("d_weights", {s.tokens, s.top_k})
          .input("logits", {s.tokens, s.experts}, Fill::normal(0, 2))
          .input("ids", {s.tokens, s.top_k}, distinct(s.experts), s.type)
          .output("d_logits", {s.tokens, s.experts})
          .flag("renormalise", renormalise)
          .rows({"d_weights", "logits", "ids", "d_logits"})
          .tolerance(1e-5);
    }
  }
  cases.add("moe-router.softmax-forward", "ties, strided")
      .input("logits", {9, 40}, Fill::integers(0, 3))
      .pitch("logits", 50)
      .output("ids", {9, 8}, DType::u8)
      .output("weights", {9, 8})
      .flag("renormalise", true)
      .flag("select_missing", false)
      .rows({"logits", "ids", "weights"})
      .tolerance(1e-6);
}

inline void add_sigmoid_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, experts, top_k, groups, groups_kept;
    DType type;
    bool bias;
  };
  for (const Size s : {Size{1, 4, 2, 1, 1, DType::u8, true},
                       {3, 17, 17, 1, 1, DType::i32, false},
                       {7, 60, 6, 6, 3, DType::u16, true},
                       {5, 256, 8, 8, 4, DType::u8, true},
                       {4, 512, 22, 1, 1, DType::u16, true},
                       {6, 10, 4, 5, 2, DType::u8, false},
                       {2, 384, 8, 1, 1, DType::u16, false}}) {
    for (const bool normalise : {false, true}) {
      const std::string label = size_label({s.tokens, s.experts, s.top_k, s.groups, s.groups_kept}) + (normalise ? " normalised" : "");
      Case& forward = cases.add("moe-router.sigmoid-forward", label);
      forward.input("logits", {s.tokens, s.experts}, Fill::normal(0, 2));
      // Larger than any sigmoid, as in real checkpoints: the bias decides who is chosen and never the weight.
      if (s.bias) forward.input("bias", {s.experts}, Fill::normal(3, 2));
      forward.output("ids", {s.tokens, s.top_k}, s.type)
          .output("weights", {s.tokens, s.top_k})
          .integer("groups", s.groups)
          .integer("groups_kept", s.groups_kept)
          .flag("normalise", normalise)
          .number("scale", 2.5)
          .flag("select_missing", false)
          .rows({"logits", "ids", "weights"})
          .tolerance(1e-6)
          .property("replay", [s](const PropertyContext& context) { return check_replay(context, s.type); });
      cases.add("moe-router.sigmoid-forward", label + " given")
          .input("logits", {s.tokens, s.experts})
          .input("given", {s.tokens, s.top_k}, distinct(s.experts), s.type)
          .output("ids", {s.tokens, s.top_k}, DType::i32)
          .output("weights", {s.tokens, s.top_k})
          .integer("groups", s.groups)
          .integer("groups_kept", s.groups_kept)
          .flag("normalise", normalise)
          .number("scale", 2.5)
          .flag("select_missing", false)
          .rows({"logits", "given", "ids", "weights"})
          .tolerance(1e-6)
          .gradient("moe-router.sigmoid-backward", {"logits"});
      cases.add("moe-router.sigmoid-backward", label)
          .input("d_weights", {s.tokens, s.top_k})
          .input("logits", {s.tokens, s.experts}, Fill::normal(0, 2))
          .input("ids", {s.tokens, s.top_k}, distinct(s.experts), s.type)
          .output("d_logits", {s.tokens, s.experts})
          .flag("normalise", normalise)
          .number("scale", 2.5)
          .rows({"d_weights", "logits", "ids", "d_logits"})
          .tolerance(1e-5);
    }
  }
  cases.add("moe-router.sigmoid-forward", "ties of experts and groups")
      .input("logits", {9, 40}, Fill::integers(0, 3))
      .input("bias", {40}, Fill::constant(0.25))
      .output("ids", {9, 8}, DType::u8)
      .output("weights", {9, 8})
      .integer("groups", 8)
      .integer("groups_kept", 3)
      .flag("normalise", true)
      .number("scale", 1)
      .flag("select_missing", false)
      .rows({"logits", "ids", "weights"})
      .tolerance(1e-6);
}

inline void add_refusals(CaseList& cases) {
  const auto refused = [](const PropertyContext& context, const std::string& want, const std::function<void(CaseData&)>& change) {
    CaseData data = context.data;
    change(data);
    const std::string text = context.refusal(data);
    return text == "moe-router.sigmoid-forward: " + want ? std::string() : text;
  };
  cases.add("moe-router.sigmoid-forward", "refusals")
      .input("logits", {3, 8})
      .input("bias", {8})
      .input("given", {3, 2}, distinct(8), DType::u8)
      .output("ids", {3, 2}, DType::u8)
      .output("weights", {3, 2})
      .integer("groups", 4)
      .integer("groups_kept", 1)
      .flag("normalise", true)
      .number("scale", 1)
      .flag("select_missing", false)
      .tolerance(1e-6)
      .property("numbers",
                [refused](const PropertyContext& context) -> std::string {
                  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
                  std::string text = refused(context, "logits: expected finite numbers, given NaN or infinity for token 1",
                                             [&](CaseData& data) { data.values["logits"][8] = nan; });
                  if (text.empty())
                    text = refused(context, "logits: expected finite numbers, given NaN or infinity for token 2",
                                   [&](CaseData& data) { data.values["logits"][23] = -infinity; });
                  if (text.empty())
                    text = refused(context, "bias: expected finite numbers, given NaN or infinity",
                                   [&](CaseData& data) { data.values["bias"][7] = nan; });
                  return text;
                })
      .property("ids",
                [refused](const PropertyContext& context) -> std::string {
                  std::string text =
                      refused(context, "given: expected distinct experts from 0 to 7 for each token, given 8 in slot 1 of token 2",
                              [](CaseData& data) { data.values["given"][5] = 8; });
                  if (text.empty())
                    text = refused(context, "given: expected distinct experts from 0 to 7 for each token, given 3 in slot 1 of token 0",
                                   [](CaseData& data) { data.values["given"] = {3, 3, 0, 1, 0, 1}; });
                  return text;
                })
      .property("groups", [refused](const PropertyContext& context) -> std::string {
        std::string text = refused(context, "groups: expected a number that divides 8 experts, given 3",
                                   [](CaseData& data) { data.scalars["groups"] = 3; });
        if (text.empty())
          text = refused(context, "groups: expected groups of at least two experts, whose two best are its score, given 8 groups of 1",
                         [](CaseData& data) { data.scalars["groups"] = 8; });
        if (text.empty())
          text = refused(context, "groups_kept: expected 1 to 4, given 5", [](CaseData& data) { data.scalars["groups_kept"] = 5; });
        return text;
      });
  // With 256 experts and one per token, the byte of expert 255 would be a missing row.
  cases.add("moe-router.softmax-forward", "refused type")
      .input("logits", {2, 256})
      .output("ids", {2, 1}, DType::u16)
      .output("weights", {2, 1})
      .flag("renormalise", false)
      .flag("select_missing", false)
      .tolerance(1e-6)
      .property("bytes", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.tensor("ids").dtype = DType::u8;
        const std::string text = context.refusal(data);
        return text.find("ids: expected a type that has a code to spare for 256 experts, 1 per token, given u8") == std::string::npos ? text
                                                                                                                                      : "";
      });
}

inline void add_cases(CaseList& cases) {
  add_softmax_cases(cases);
  add_sigmoid_cases(cases);
  add_refusals(cases);

  cases.add("moe-router.softmax-forward", "2048x128x8")
      .input("logits", {2048, 128})
      .output("ids", {2048, 8}, DType::u8)
      .output("weights", {2048, 8})
      .flag("renormalise", true)
      .flag("select_missing", false)
      .bench(0, 4.0 * 2048 * 128);
  cases.add("moe-router.sigmoid-forward", "2048x256x8")
      .input("logits", {2048, 256})
      .input("bias", {256})
      .output("ids", {2048, 8}, DType::u8)
      .output("weights", {2048, 8})
      .integer("groups", 1)
      .integer("groups_kept", 1)
      .flag("normalise", true)
      .number("scale", 2.5)
      .flag("select_missing", false)
      .bench(0, 4.0 * 2048 * 256);
  cases.add("moe-router.sigmoid-backward", "2048x256x8")
      .input("d_weights", {2048, 8})
      .input("logits", {2048, 256})
      .input("ids", {2048, 8}, distinct(256), DType::u8)
      .output("d_logits", {2048, 256})
      .flag("normalise", true)
      .number("scale", 2.5)
      .bench(0, 8.0 * 2048 * 256);
}

}  // namespace trilithon::moe_router
