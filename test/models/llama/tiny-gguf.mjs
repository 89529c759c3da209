#!/usr/bin/env node
// tiny-gguf.mjs: writes a valid, tiny GGUF model with random weights (no dependency, node >= 18).
//
//   node tiny-gguf.mjs out.gguf [--seed 1] [--layers 2] [--dim 64] [--ff 128] [--ctx 2048]
//                               [--template chatml|tools|none] [--pooling none|mean|cls|last]
//                               [--endBias 1] [--toolBias -12]
//
// What it is for: exercising the REAL llama.cpp code path (load, tokenize, evaluate, sample,
// grammar, KV cache, streaming, abort, embeddings) in tests, without any download. The model
// knows nothing: its text is noise. Same options => same bytes => same greedy output.
//
// Templates: "tools" (Hermes/Qwen style tool calls) makes node-llama-cpp's resolveChatWrapper() work for
// about one second of blocking CPU, so resolve it once and reuse it; "chatml" resolves in about 10 ms.
// Always create contexts with {threads: 1}: with more threads than free cores this model runs 600 times slower.
//
// Layout of the model ("llama" architecture):
//   * byte-level BPE vocabulary ("gpt2" tokenizer): 256 byte tokens, a few merges, control tokens
//   * grouped-query attention (4 heads, 2 KV heads), SwiGLU feed-forward, RMS norms, RoPE
//   * embedding dimension 0 is a constant that no layer writes to. Column 0 of the output matrix is
//     then a per-token bias: it makes printable ASCII likely, broken UTF-8 very unlikely, and
//     end-of-turn and JSON closers likely enough that generation and grammars do end.

import { writeFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

// ---------------------------------------------------------------- GGUF container (version 3)

const GGUF_TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 }
const GGML_F32 = 0
const GGML_F16 = 1
const ALIGNMENT = 32

class ByteWriter {
  #chunks = []
  length = 0
  bytes(u8) {
    this.#chunks.push(u8)
    this.length += u8.byteLength
    return this
  }
  #fixed(size, fill) {
    const v = new DataView(new ArrayBuffer(size))
    fill(v)
    return this.bytes(new Uint8Array(v.buffer))
  }
  u8(n) {
    return this.#fixed(1, (v) => v.setUint8(0, n))
  }
  u32(n) {
    return this.#fixed(4, (v) => v.setUint32(0, n, true))
  }
  u64(n) {
    return this.#fixed(8, (v) => v.setBigUint64(0, BigInt(n), true))
  }
  f32(n) {
    return this.#fixed(4, (v) => v.setFloat32(0, n, true))
  }
  string(s) {
    const b = new TextEncoder().encode(s)
    return this.u64(b.length).bytes(b)
  }
  pad(to) {
    const rest = (to - (this.length % to)) % to
    return rest === 0 ? this : this.bytes(new Uint8Array(rest))
  }
  concat() {
    const out = new Uint8Array(this.length)
    let at = 0
    for (const c of this.#chunks) {
      out.set(c, at)
      at += c.byteLength
    }
    return out
  }
}

const u32 = (value) => ({ type: "u32", value })
const f32 = (value) => ({ type: "f32", value })
const str = (value) => ({ type: "string", value })
const bool = (value) => ({ type: "bool", value })
const arr = (of, values) => ({ type: "array", of, values })

function writeScalar(w, type, value) {
  if (type === "u32" || type === "i32") w.u32(value) // only non-negative values are written
  else if (type === "f32") w.f32(value)
  else if (type === "bool") w.u8(value ? 1 : 0)
  else if (type === "string") w.string(value)
  else throw new Error(`unsupported metadata type ${type}`)
}

/** metadata: Record<key, {type, value}>; tensors: {name, dims, type, data: Uint8Array}[] (dims: fastest first) */
export function encodeGguf(metadata, tensors) {
  const w = new ByteWriter()
  w.bytes(new TextEncoder().encode("GGUF")).u32(3).u64(tensors.length).u64(Object.keys(metadata).length)
  for (const [key, v] of Object.entries(metadata)) {
    w.string(key).u32(GGUF_TYPE[v.type])
    if (v.type === "array") {
      w.u32(GGUF_TYPE[v.of]).u64(v.values.length)
      for (const item of v.values) writeScalar(w, v.of, item)
    } else {
      writeScalar(w, v.type, v.value)
    }
  }
  let offset = 0 // relative to the start of the data section; each tensor is aligned
  for (const t of tensors) {
    w.string(t.name).u32(t.dims.length)
    for (const d of t.dims) w.u64(d)
    w.u32(t.type).u64(offset)
    offset += Math.ceil(t.data.byteLength / ALIGNMENT) * ALIGNMENT
  }
  w.pad(ALIGNMENT)
  for (const t of tensors) w.bytes(t.data).pad(ALIGNMENT)
  return w.concat()
}

// ---------------------------------------------------------------- numbers

/** Small deterministic generator (mulberry32); normal() is Box-Muller. */
function makeRandom(seed) {
  let s = seed >>> 0
  const next = () => {
    s = (s + 0x6d2b79f5) >>> 0
    let t = Math.imul(s ^ (s >>> 15), 1 | s)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return { normal: () => Math.sqrt(-2 * Math.log(next() || 1e-12)) * Math.cos(2 * Math.PI * next()) }
}

/** IEEE half of a number in the normal range of halves (tiny values become 0). */
function toHalf(x) {
  const view = new DataView(new ArrayBuffer(4))
  view.setFloat32(0, x)
  const bits = view.getUint32(0)
  const sign = (bits >>> 16) & 0x8000
  const exponent = ((bits >>> 23) & 0xff) - 127 + 15
  if (exponent <= 0) return sign
  if (exponent >= 31) return sign | 0x7bff
  const rounded = ((exponent << 10) | ((bits >>> 13) & 0x3ff)) + ((bits >>> 12) & 1)
  return sign | Math.min(rounded, 0x7bff)
}

const f32Data = (n, at) => new Uint8Array(Float32Array.from({ length: n }, (_, i) => at(i)).buffer)
const f16Data = (n, at) => new Uint8Array(Uint16Array.from({ length: n }, (_, i) => toHalf(at(i))).buffer)

// ---------------------------------------------------------------- vocabulary

/** GPT-2's reversible byte -> printable character table, which the "gpt2" tokenizer expects. */
function byteAlphabet() {
  const printable = (b) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255)
  let extra = 0
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(printable(b) ? b : 256 + extra++))
}

const CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
// The whole opening of a tool call is ONE token, so that a random model can open a call by itself: see --toolBias.
const TOOL_CALL_OPENING = '<tool_call>\n{"name": "'
const USER_DEFINED = [
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
  TOOL_CALL_OPENING
]
const MERGES = ["t h", "th e", "Ġ a", "i n", "e r", "Ġ t", "o n", "r e", "a n", "an d", "l l", "Ġt he", "in g"]

const TOKEN_TYPE = { normal: 1, control: 3, userDefined: 4 }

function makeVocabulary() {
  const alphabet = byteAlphabet()
  const tokens = alphabet.map((text, byte) => ({ text, type: TOKEN_TYPE.normal, byte }))
  for (const m of MERGES) tokens.push({ text: m.replace(" ", ""), type: TOKEN_TYPE.normal })
  for (const text of CONTROL) tokens.push({ text, type: TOKEN_TYPE.control })
  for (const text of USER_DEFINED) tokens.push({ text, type: TOKEN_TYPE.userDefined })
  const id = (text) => tokens.findIndex((t) => t.text === text)
  return { tokens, id }
}

/** Logit bias of each token, see the note on dimension 0 at the top. */
function tokenBias(token, { toolBias, endBias }) {
  if (token.text === "<|im_end|>") return endBias
  if (token.text === TOOL_CALL_OPENING) return toolBias
  if (token.type !== TOKEN_TYPE.normal) return -12
  if (token.byte === undefined) return 2.5 // merged words
  const c = String.fromCharCode(token.byte)
  if (token.byte >= 128) return -12 // part of a multi-byte character
  if (token.byte < 32 || token.byte === 127) return c === "\n" ? 0 : -12
  if (c === '"') return 3
  if (/[a-z ]/.test(c)) return 2
  if (/[},\]]/.test(c)) return 1.5
  return 0
}

// ---------------------------------------------------------------- chat templates

const TEMPLATES = {
  none: undefined,
  chatml:
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}" +
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
  // Hermes/Qwen style tool calls: JSON inside <tool_call> tags, tool results inside <tool_response> tags of a user turn
  tools: [
    "{%- if tools %}{{- '<|im_start|>system\\n' }}",
    "{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}",
    "{{- '# Tools\\n\\nYou may call one or more functions.\\n<tools>' }}",
    "{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}",
    '{{- \'\\n</tools>\\nReturn <tool_call>\\n{"name": <name>, "arguments": <json>}\\n</tool_call><|im_end|>\\n\' }}',
    "{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}",
    "{%- for message in messages %}",
    "{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}",
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}",
    "{%- elif message.role == 'assistant' %}{{- '<|im_start|>assistant\\n' }}",
    "{%- if message.content %}{{- message.content }}{%- endif %}",
    "{%- if message.tool_calls %}{%- for tool_call in message.tool_calls %}",
    "{%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}",
    "{{- '\\n<tool_call>\\n{\"name\": \"' + tool_call.name + '\", \"arguments\": ' }}{{- tool_call.arguments | tojson }}{{- '}\\n</tool_call>' }}",
    "{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}",
    "{%- elif message.role == 'tool' %}{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}",
    "{%- endif %}{%- endfor %}",
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
  ].join("")
}

const POOLING = { none: 0, mean: 1, cls: 2, last: 3 }

// ---------------------------------------------------------------- the model

export function buildTinyGguf(options = {}) {
  const {
    seed = 1,
    layers = 2,
    dim = 64,
    ff = 128,
    heads = 4,
    kvHeads = 2,
    ctx = 2048,
    template = "tools",
    bos = "<|endoftext|>",
    pooling
  } = options
  const { endBias = 1, toolBias = -12 } = options // e.g. toolBias 8: nearly every answer is a tool call
  const random = makeRandom(seed)
  const { tokens, id } = makeVocabulary()
  const vocab = tokens.length
  const headDim = dim / heads
  const CONST = 8 // value of embedding dimension 0
  // After the last RMS norm dimension 0 is CONST / rms, where the other dims have variance of about 1.
  const normedConst = CONST / Math.sqrt((CONST * CONST + dim - 1) / dim)

  const chatTemplate = TEMPLATES[template] ?? (template in TEMPLATES ? undefined : template)
  const metadata = {
    "general.architecture": str("llama"),
    "general.type": str("model"),
    "general.name": str(`tiny-random-${seed}`),
    "general.file_type": u32(1), // mostly F16
    "general.alignment": u32(ALIGNMENT),
    "llama.context_length": u32(ctx),
    "llama.embedding_length": u32(dim),
    "llama.block_count": u32(layers),
    "llama.feed_forward_length": u32(ff),
    "llama.attention.head_count": u32(heads),
    "llama.attention.head_count_kv": u32(kvHeads),
    "llama.attention.layer_norm_rms_epsilon": f32(1e-5),
    "llama.rope.dimension_count": u32(headDim),
    "llama.rope.freq_base": f32(10000),
    "llama.vocab_size": u32(vocab),
    ...(pooling === undefined ? {} : { "llama.pooling_type": u32(POOLING[pooling]) }),
    "tokenizer.ggml.model": str("gpt2"),
    "tokenizer.ggml.pre": str("gpt-2"),
    "tokenizer.ggml.tokens": arr(
      "string",
      tokens.map((t) => t.text)
    ),
    "tokenizer.ggml.token_type": arr(
      "i32",
      tokens.map((t) => t.type)
    ), // llama.cpp insists on i32
    "tokenizer.ggml.merges": arr("string", MERGES),
    "tokenizer.ggml.bos_token_id": u32(id(bos)),
    "tokenizer.ggml.eos_token_id": u32(id("<|im_end|>")),
    "tokenizer.ggml.padding_token_id": u32(id("<|endoftext|>")),
    "tokenizer.ggml.add_bos_token": bool(false),
    ...(chatTemplate === undefined ? {} : { "tokenizer.chat_template": str(chatTemplate) })
  }

  // A GGUF matrix of dims [in, out] is stored row by row, one row of `in` values per output.
  const matrix = (name, inputs, outputs, scale, override) => ({
    name,
    dims: [inputs, outputs],
    type: GGML_F16,
    data: f16Data(inputs * outputs, (i) => {
      const value = random.normal() * scale
      return override?.(Math.floor(i / inputs), i % inputs) ?? value
    })
  })
  const ones = (name) => ({ name, dims: [dim], type: GGML_F32, data: f32Data(dim, () => 1) })
  const keepConst = (row) => (row === 0 ? 0 : undefined) // a residual branch must not write dimension 0

  const tensors = [matrix("token_embd.weight", dim, vocab, 1, (_, col) => (col === 0 ? CONST : undefined))]
  for (let l = 0; l < layers; l++) {
    const p = `blk.${l}`
    tensors.push(
      ones(`${p}.attn_norm.weight`),
      matrix(`${p}.attn_q.weight`, dim, dim, 1 / Math.sqrt(dim)),
      matrix(`${p}.attn_k.weight`, dim, headDim * kvHeads, 1 / Math.sqrt(dim)),
      matrix(`${p}.attn_v.weight`, dim, headDim * kvHeads, 1 / Math.sqrt(dim)),
      matrix(`${p}.attn_output.weight`, dim, dim, 1 / Math.sqrt(dim), keepConst),
      ones(`${p}.ffn_norm.weight`),
      matrix(`${p}.ffn_gate.weight`, dim, ff, 1 / Math.sqrt(dim)),
      matrix(`${p}.ffn_up.weight`, dim, ff, 1 / Math.sqrt(dim)),
      matrix(`${p}.ffn_down.weight`, ff, dim, 1 / Math.sqrt(ff), keepConst)
    )
  }
  tensors.push(
    ones("output_norm.weight"),
    matrix("output.weight", dim, vocab, 1 / Math.sqrt(dim), (row, col) =>
      col === 0 ? tokenBias(tokens[row], { endBias, toolBias }) / normedConst : undefined
    )
  )
  return encodeGguf(metadata, tensors)
}

// ---------------------------------------------------------------- command line

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [out, ...rest] = process.argv.slice(2)
  if (!out || out.startsWith("--")) {
    console.error(
      "usage: node tiny-gguf.mjs out.gguf [--seed N] [--layers N] [--dim N] [--ff N] [--ctx N] [--template NAME] [--pooling NAME]"
    )
    process.exit(2)
  }
  const options = {}
  for (let i = 0; i < rest.length; i += 2) {
    const key = rest[i].replace(/^--/, "")
    options[key] = /^-?\d+(\.\d+)?$/.test(rest[i + 1]) ? Number(rest[i + 1]) : rest[i + 1]
  }
  const file = buildTinyGguf(options)
  writeFileSync(out, file)
  console.log(`${out}: ${file.byteLength} bytes`)
}
