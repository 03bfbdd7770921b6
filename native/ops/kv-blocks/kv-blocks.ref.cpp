#include "ops/kv-blocks/kv-blocks.h"

namespace trilithon::kv_blocks {

void append_reference(const Append& a, const Chunk* chunks, int64_t chunk_count) {
  const int64_t size = static_cast<int64_t>(dtype_size(a.rows.dtype)), row_bytes = a.rows.row_elements() * size;
  const PageMap map = page_map(a.sequences, a.pages.shape[1]);
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const KeyPlace place = key_place(map, chunks[c], chunks[c].position + t);
      const char* from = a.rows.as<char>() + (chunks[c].query_begin + t) * a.rows.stride[0] * size;
      char* to = a.pages.as<char>() + place.page * a.pages.stride[0] * size + place.row * row_bytes;
      for (int64_t i = 0; i < row_bytes; ++i) to[i] = from[i];
    }
  }
}

void move_reference(const TensorView& pages, const TensorView& ids, const TensorView& slots, int64_t offset, bool to_slots) {
  const int64_t size = static_cast<int64_t>(dtype_size(pages.dtype)), page_bytes = pages.shape[2] * size;
  for (int64_t block = 0; block < ids.shape[0]; ++block) {
    for (int64_t part = 0; part < pages.shape[0]; ++part) {
      char* page = pages.as<char>() + part * pages.stride[0] * size + ids.at<int32_t>(block) * page_bytes;
      char* slot = slots.as<char>() + block * slots.stride[0] + offset + part * page_bytes;
      for (int64_t i = 0; i < page_bytes; ++i) (to_slots ? slot[i] : page[i]) = to_slots ? page[i] : slot[i];
    }
  }
}

}  // namespace trilithon::kv_blocks
