// Names of KV blocks: a chain of SHA-256 over the token ids of a prefix, block by block. README.md says what is hashed.
#pragma once

#include "include/op.h"

namespace trilithon::block_hash {

struct Digest {
  static constexpr const char* op = "block-hash";
  static constexpr const char* name = "block-hash.digest";
  static constexpr const char* summary = "SHA-256 of bytes.";

  TensorView bytes, hash;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("bytes", bytes, only(DType::u8), "[bytes]", maybe_empty);
    v.output("hash", hash, only(DType::u8), "[32]");
  }
};

struct Root {
  static constexpr const char* op = "block-hash";
  static constexpr const char* name = "block-hash.root";
  static constexpr const char* summary = "The parent of first blocks: SHA-256 of the four fields of a KV key beside its hash, as UTF-8.";

  TensorView salt, profile, format, tenant, hash;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("salt", salt, only(DType::u8), "[bytes]", maybe_empty);
    v.input("profile", profile, only(DType::u8), "[bytes]", maybe_empty);
    v.input("format", format, only(DType::u8), "[bytes]", maybe_empty);
    v.input("tenant", tenant, only(DType::u8), "[bytes]", maybe_empty);
    v.output("hash", hash, only(DType::u8), "[32]");
  }
};

struct Chain {
  static constexpr const char* op = "block-hash";
  static constexpr const char* name = "block-hash.chain";
  static constexpr const char* summary = "Hash of each full block of tokens: SHA-256 of the hash before it and its token ids.";

  TensorView parent, tokens, hashes;
  int64_t block_size = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("parent", parent, only(DType::u8), "[32]");
    v.input("tokens", tokens, only(DType::i32), "[tokens]", maybe_empty);
    v.output("hashes", hashes, only(DType::u8), "[tokens / block_size, 32]", maybe_empty);
    v.integer("block_size", block_size);
  }
};

Status run(const Digest& args, Runtime& runtime);
Status run(const Root& args, Runtime& runtime);
Status run(const Chain& args, Runtime& runtime);

void digest_reference(const Digest& args);
void root_reference(const Root& args);
void chain_reference(const Chain& args);

}  // namespace trilithon::block_hash
