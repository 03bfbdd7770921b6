#include "ops/kv-blocks/kv-blocks.h"

#include <cstring>
#include <string>

#include "include/check.h"
#include "pool/scratch-arrays.h"

namespace trilithon::kv_blocks {
namespace {

Status check_move(const char* op, const TensorView& pages, const TensorView& ids, const TensorView& slots, int64_t offset, bool distinct,
                  Runtime& runtime) {
  Check check(op);
  Dim parts("parts"), page_count("pages"), width("width"), blocks("blocks"), slot_bytes("slot_bytes");
  check.shape("pages", pages, {&parts, &page_count, &width});
  check.shape("ids", ids, {&blocks});
  check.shape("slots", slots, {&blocks, &slot_bytes});
  if (!check.ok()) return check.status();
  const int64_t bytes = parts * width * static_cast<int64_t>(dtype_size(pages.dtype));
  check.that(offset >= 0, "offset", "a number >= 0", std::to_string(offset));
  check.that(offset + bytes <= slot_bytes, "slots", "slots of at least " + std::to_string(offset + bytes) + " bytes",
             std::to_string(slot_bytes));
  if (!check.ok()) return check.status();

  uint8_t* taken = nullptr;
  ScratchArrays arrays;
  arrays.add(taken, distinct ? page_count : 0);
  if (Status status = arrays.reserve(op, runtime); !status.ok()) return status;
  if (distinct) std::memset(taken, 0, static_cast<size_t>(page_count.value));
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t id = ids.at<int32_t>(block);
    const std::string where = std::to_string(id) + " at " + std::to_string(block);
    if (id < 0 || id >= page_count) return invalid_argument(op, "ids", "pages from 0 to " + std::to_string(page_count - 1), where);
    if (!distinct) continue;
    if (taken[id] != 0) return invalid_argument(op, "ids", "pages that differ", where + " for the second time");
    taken[id] = 1;
  }
  return {};
}

Status move(const char* op, const TensorView& pages, const TensorView& ids, const TensorView& slots, int64_t offset, bool to_slots,
            Runtime& runtime) {
  if (Status status = check_move(op, pages, ids, slots, offset, !to_slots, runtime); !status.ok()) return status;
  if (runtime.options().backend == Backend::reference) {
    move_reference(pages, ids, slots, offset, to_slots);
    return {};
  }
  const int64_t size = static_cast<int64_t>(dtype_size(pages.dtype)), page_bytes = pages.shape[2] * size, parts = pages.shape[0];
  return runtime.parallel(op, ids.shape[0] * parts, Runtime::grain(2 * page_bytes), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item / parts, part = item % parts;
      char* page = pages.as<char>() + part * pages.stride[0] * size + ids.as<int32_t>()[block] * page_bytes;
      char* slot = slots.as<char>() + block * slots.stride[0] + offset + part * page_bytes;
      std::memcpy(to_slots ? slot : page, to_slots ? page : slot, static_cast<size_t>(page_bytes));
    }
  });
}

}  // namespace

Status run(const Append& a, Runtime& runtime) {
  Check check(Append::name);
  check.that(a.rows.rank >= 2 && a.pages.rank == a.rows.rank + 1, "pages", "[pages, block_size, ...] with one dim more than rows",
             shape_text(a.pages));
  for (int i = 1; i < a.rows.rank && check.ok(); ++i) {
    check.that(a.pages.shape[i + 1] == a.rows.shape[i], "pages", "rows of the shape that rows " + shape_text(a.rows) + " has",
               shape_text(a.pages));
  }
  check.that(a.pages.dtype == a.rows.dtype, "pages", std::string("dtype ") + dtype_name(a.rows.dtype) + ", which rows has",
             dtype_name(a.pages.dtype));
  if (!check.ok()) return check.status();

  const int64_t count = chunk_count(a.sequences), block_size = a.pages.shape[1];
  Chunk* chunks = nullptr;
  ScratchArrays arrays;
  arrays.add(chunks, count);
  if (Status status = arrays.reserve(Append::name, runtime); !status.ok()) return status;
  if (Status status = resolve_chunks(Append::name, a.sequences, a.rows.shape[0], a.pages.shape[0], block_size, chunks); !status.ok()) {
    return status;
  }
  if (runtime.options().backend == Backend::reference) {
    append_reference(a, chunks, count);
    return {};
  }
  const int64_t size = static_cast<int64_t>(dtype_size(a.rows.dtype)), row_bytes = a.rows.row_elements() * size;
  const PageMap map = page_map(a.sequences, block_size);
  return runtime.parallel(
      Append::name, count, Runtime::grain(2 * row_bytes * (a.rows.shape[0] / count + 1)), [&](int64_t begin, int64_t end, int) {
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t t = 0; t < chunks[c].query_count; ++t) {
            const KeyPlace place = key_place(map, chunks[c], chunks[c].position + t);
            std::memcpy(a.pages.as<char>() + place.page * a.pages.stride[0] * size + place.row * row_bytes,
                        a.rows.as<char>() + (chunks[c].query_begin + t) * a.rows.stride[0] * size, static_cast<size_t>(row_bytes));
          }
        }
      });
}

Status run(const Gather& a, Runtime& runtime) { return move(Gather::name, a.pages, a.ids, a.slots, a.offset, true, runtime); }
Status run(const Scatter& a, Runtime& runtime) { return move(Scatter::name, a.pages, a.ids, a.slots, a.offset, false, runtime); }

}  // namespace trilithon::kv_blocks

namespace trilithon {

void register_kv_blocks(OpRegistry& registry) {
  add_entry<kv_blocks::Append>(registry);
  add_entry<kv_blocks::Gather>(registry);
  add_entry<kv_blocks::Scatter>(registry);
}

}  // namespace trilithon
