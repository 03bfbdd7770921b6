#pragma once

#include "harness/case.h"
#include "harness/refusal.h"

namespace trilithon::kv_blocks {

// What was gathered and then scattered to other pages is what it was.
inline Property there_and_back() {
  return [](const PropertyContext& context) -> std::string {
    const Outcome gathered = context.run(context.data);
    CaseData back = context.data;
    std::vector<double> ids = back.values.at("ids");
    const double pages = static_cast<double>(back.tensor("pages").shape[1]);
    for (double& id : ids) id = pages - 1 - id;
    back.values["ids"] = ids;
    back.values["slots"] = gathered.values("slots");
    const Outcome scattered = context.run("kv-blocks.scatter", back);
    CaseData again = context.data;
    again.values["ids"] = ids;
    again.values["pages"] = scattered.values("pages");
    const Outcome once_more = context.run(again);
    return compare_bits(once_more["slots"], gathered["slots"]);
  };
}

inline void add_cases(CaseList& cases) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
    const int64_t bytes = static_cast<int64_t>(dtype_size(dtype));
    cases.add("kv-blocks.append", dtype_name(dtype))
        .input("rows", {6, 2, 5}, Fill::integers(0, 100), dtype)
        .pitch("rows", 13)
        .input("query_starts", {4}, Fill::values({0, 1, 1, 6}), DType::i32)
        .input("context_lengths", {3}, Fill::values({9, 0, 7}), DType::i32)
        .input("block_table", {3, 3}, Fill::values({4, 0, 2, -1, -1, -1, 5, 1, -1}), DType::i32)
        .inout("pages", {7, 4, 2, 5}, Fill::integers(0, 100), dtype)
        .pitch("pages", 50);
    cases.add("kv-blocks.gather", dtype_name(dtype))
        .input("pages", {3, 6, 7}, Fill::integers(0, 100), dtype)
        .pitch("pages", 45)
        .input("ids", {4}, Fill::values({5, 0, 2, 4}), DType::i32)
        .inout("slots", {4, 3 * 7 * bytes + 9}, Fill::integers(0, 256), DType::u8)
        .integer("offset", 5)
        .property("there and back", there_and_back())
        .property("no such page", refused(
                                      [](CaseData& data) {
                                        data.values["ids"] = {5, 6, 2, 4};
                                      },
                                      "ids: expected pages from 0 to 5, given 6 at 1"))
        .property("short slots", refused([](CaseData& data) { data.scalars["offset"] = 10; }, "slots: expected slots of at least"))
        .property("offset", refused([](CaseData& data) { data.scalars["offset"] = -1; }, "offset: expected a number >= 0, given -1"));
    cases.add("kv-blocks.scatter", dtype_name(dtype))
        .input("slots", {4, 3 * 7 * bytes + 9}, Fill::integers(0, 256), DType::u8)
        .input("ids", {4}, Fill::values({5, 0, 2, 4}), DType::i32)
        .inout("pages", {3, 6, 7}, Fill::integers(0, 100), dtype)
        .pitch("pages", 45)
        .integer("offset", 9)
        .property("twice the same page", refused(
                                             [](CaseData& data) {
                                               data.values["ids"] = {5, 0, 5, 4};
                                             },
                                             "ids: expected pages that differ, given 5 at 2"));
  }
  // Bits that are no ordinary number pass unchanged.
  cases.add("kv-blocks.append", "every code of bf16")
      .input("rows", {256, 256}, Fill::codes(), DType::bf16)
      .input("query_starts", {2}, Fill::values({0, 256}), DType::i32)
      .input("context_lengths", {1}, Fill::values({256}), DType::i32)
      .input("block_table", {1, 2}, Fill::values({1, 0}), DType::i32)
      .inout("pages", {2, 128, 256}, Fill::constant(1), DType::bf16);

  const int64_t layers = 16, pages = 512, width = 16 * 2 * 128, blocks = 64;
  std::vector<double> ids;
  for (int64_t i = 0; i < blocks; ++i) ids.push_back(static_cast<double>(i * 37 % pages));
  const double moved = 2.0 * 4 * layers * blocks * width;
  cases.add("kv-blocks.gather", "64 blocks of 16 layers")
      .input("pages", {layers, pages, width})
      .input("ids", {blocks}, Fill::values(ids), DType::i32)
      .inout("slots", {blocks, layers * width * 4}, Fill::constant(0), DType::u8)
      .integer("offset", 0)
      .bench(0, moved);
  cases.add("kv-blocks.scatter", "64 blocks of 16 layers")
      .input("slots", {blocks, layers * width * 4}, Fill::constant(0), DType::u8)
      .input("ids", {blocks}, Fill::values(ids), DType::i32)
      .inout("pages", {layers, pages, width})
      .integer("offset", 0)
      .bench(0, moved);
}

}  // namespace trilithon::kv_blocks
