/** Checks writes and edits: atomic, literal, with preserved line endings, and never over unseen changes. */
import * as Effect from "effect/Effect"
import type { Replacement, Service } from "../../../../core/Backend.ts"
import { fails, assert, expect } from "../assert.ts"
import {
  listFiles,
  readBytes,
  bytesOf,
  runWithoutDefect,
  putFiles,
  listPaths,
  readText,
  rule,
  type Rules,
  readWhole
} from "./common.ts"

const numerically = (numbers: ReadonlyArray<number>): ReadonlyArray<number> =>
  [...new Set(numbers)].sort((left, right) => left - right)

interface Edit {
  readonly name: string
  readonly before: string
  readonly edits: ReadonlyArray<Replacement>
  readonly after: string
  readonly replaced: number
  readonly lines: ReadonlyArray<number>
}

const edits: ReadonlyArray<Edit> = [
  {
    name: "one place",
    before: "a\nb\nc\n",
    edits: [{ old: "b", new: "B" }],
    after: "a\nB\nc\n",
    replaced: 1,
    lines: [2]
  },
  {
    name: "nothing in its place",
    before: "a\nb\nc",
    edits: [{ old: "b\n", new: "" }],
    after: "a\nc",
    replaced: 1,
    lines: [2]
  },
  {
    name: "replacement patterns are text",
    before: "price: X\n",
    edits: [{ old: "X", new: "$& $1 $$ $` $' $<n> \\1 \\n %s" }],
    after: "price: $& $1 $$ $` $' $<n> \\1 \\n %s\n",
    replaced: 1,
    lines: [1]
  },
  {
    name: "replacement patterns are text when all are replaced",
    before: "X\nX\n",
    edits: [{ old: "X", new: "$$5 $& end", replaceAll: true }],
    after: "$$5 $& end\n$$5 $& end\n",
    replaced: 2,
    lines: [1, 2]
  },
  {
    name: "what to look for is literal",
    before: "a.c\nabc\n^a.c$ (x) [y]* \\d+?\n",
    edits: [{ old: "^a.c$ (x) [y]* \\d+?", new: "literal" }],
    after: "a.c\nabc\nliteral\n",
    replaced: 1,
    lines: [3]
  },
  {
    name: "all places, whose replacement holds what was replaced",
    before: "a a\nb\na",
    edits: [{ old: "a", new: "aa", replaceAll: true }],
    after: "aa aa\nb\naa",
    replaced: 3,
    lines: [1, 3]
  },
  {
    name: "one after the other",
    before: "one\ntwo\n",
    edits: [
      { old: "one", new: "first" },
      { old: "first\ntwo", new: "both" }
    ],
    after: "both\n",
    replaced: 2,
    lines: [1]
  },
  {
    name: "lines are those of the new file",
    before: "a\nb\nc\nd\n",
    edits: [
      { old: "d", new: "D" },
      { old: "a", new: "a1\na2\na3" }
    ],
    after: "a1\na2\na3\nb\nc\nD\n",
    replaced: 2,
    lines: [1, 6]
  },
  {
    name: "several lines",
    before: "if (x) {\n  y()\n}\n",
    edits: [{ old: "if (x) {\n  y()\n}", new: "y()" }],
    after: "y()\n",
    replaced: 1,
    lines: [1]
  },
  {
    name: "no final newline is kept so",
    before: "a\nb",
    edits: [{ old: "a", new: "A" }],
    after: "A\nb",
    replaced: 1,
    lines: [1]
  },
  {
    name: "CRLF is matched by LF, and kept",
    before: "a\r\nb\r\nc\r\n",
    edits: [{ old: "a\nb", new: "x\ny\nz" }],
    after: "x\r\ny\r\nz\r\nc\r\n",
    replaced: 1,
    lines: [1]
  },
  {
    name: "CRLF comes with new lines too",
    before: "a\r\nb\r\n",
    edits: [{ old: "b", new: "b\nc" }],
    after: "a\r\nb\r\nc\r\n",
    replaced: 1,
    lines: [2]
  },
  {
    name: "CRLF that is given is not doubled",
    before: "a\r\nb\r\n",
    edits: [{ old: "a\r\nb", new: "x\r\ny" }],
    after: "x\r\ny\r\n",
    replaced: 1,
    lines: [1]
  },
  {
    name: "mixed endings stay as they are",
    before: "a\r\nb\nc\r\nd\n",
    edits: [{ old: "b\nc", new: "B\nC" }],
    after: "a\r\nB\nC\r\nd\n",
    replaced: 1,
    lines: [2]
  },
  {
    name: "characters beyond the first plane",
    before: "\u{1F600}\u{1F601}\ne\u0301 é\n",
    edits: [{ old: "é", new: "\u{1F468}\u200D\u{1F469}" }],
    after: "\u{1F600}\u{1F601}\ne\u0301 \u{1F468}\u200D\u{1F469}\n",
    replaced: 1,
    lines: [2]
  }
]

/** Texts that almost match, with the line of the match. */
const nearly: ReadonlyArray<readonly [name: string, before: string, old: string, line: number]> = [
  ["trailing space and case", "a\nb\nlet x = 1  \nc\n", "Let x = 1\nc", 3],
  ["indentation", "a\nb\n\t\tcall()\n\t\tmore()\n", "    call()\n    more()", 3],
  ["smart quotes and case", "a\nb\nsay \u201chello\u201d now\n", 'Say "hello" now', 3],
  ["case", "a\nb\nHello World\n", "hello world", 3],
  ["line endings", "a\r\nb\nfirst\r\nsecond\nc\n", "first\nsecond", 3],
  ["something near", "alpha\nbeta\nconst total = price * count\nomega\n", "const total = price * amount", 3]
]

const versions = Effect.fnUntraced(function* (backend: Service) {
  const first = yield* backend.write("/v.txt", "aaa")
  const file = yield* backend.read("/v.txt")
  yield* expect(file.version, first.version, "read gives the version that write gave")
  yield* expect((yield* backend.read("/v.txt", { limit: 1 })).version, first.version, "a version lasts while nothing changes")
  const second = yield* backend.write("/v.txt", "bbb", { version: first.version })
  yield* assert(second.version !== first.version, "a change of content changes the version, at the same size", second)
  yield* expect(second.created, false, "write says that the file was there")
  yield* fails(backend.write("/v.txt", "ccc", { version: first.version }), "a write with a stale version", "Conflict")
  yield* fails(backend.edit("/v.txt", [{ old: "b", new: "c", replaceAll: true }], { version: first.version }), "an edit with a stale version", "Conflict")
  yield* fails(backend.edit("/v.txt", [{ old: "nowhere", new: "c" }], { version: first.version }), "a stale edit that matches nothing", "Conflict")
  const edited = yield* backend.edit("/v.txt", [{ old: "bbb", new: "ddd" }], { version: second.version })
  yield* expect((yield* backend.read("/v.txt")).version, edited.version, "edit gives the version of what it left")
  yield* expect(yield* readWhole(backend, "/v.txt"), "ddd", "stale operations changed nothing")
  yield* backend.upload([{ path: "/v.txt", content: bytesOf("eee") }])
  yield* fails(backend.edit("/v.txt", [{ old: "e", new: "f", replaceAll: true }], { version: edited.version }), "an edit after an upload", "Conflict")
  yield* backend.delete("/v.txt")
  yield* fails(backend.write("/v.txt", "x", { version: edited.version }), "a write of what was deleted since", "Conflict", "NotFound")
  yield* fails(backend.edit("/v.txt", [{ old: "x", new: "y" }], { version: edited.version }), "an edit of what was deleted since", "Conflict", "NotFound")
  yield* fails(backend.write("/w.txt", "x", { version: "made up" }), "a write with a version of nothing", "Conflict", "NotFound")
  yield* expect(yield* listFiles(backend), [], "nothing was made")
}) // prettier-ignore

/** Checks of writes and edits. */
export const writeRules: Rules<Service> = [
  rule("write makes folders, and says whether it made the file", function* (backend) {
    const first = yield* backend.write("/a/b/c.txt", "one")
    yield* expect([first.path, first.created], ["/a/b/c.txt", true], "the first write")
    const second = yield* backend.write("/a/b/c.txt", "two")
    yield* expect(second.created, false, "the second write")
    yield* expect(yield* readWhole(backend, "/a/b/c.txt"), "two", "the last write counts")
    yield* backend.write("/a/b/c.txt", "")
    yield* expect(yield* readWhole(backend, "/a/b/c.txt"), "", "a file can be empty")
  }),
  rule("write with `create` overwrites nothing", function* (backend) {
    yield* expect((yield* backend.write("/new", "one", { create: true })).created, true, "a new file")
    yield* fails(backend.write("/new", "two", { create: true }), "write over a file", "AlreadyExists")
    yield* expect(yield* readWhole(backend, "/new"), "one", "the file is as it was")
    yield* putFiles(backend, { "/d/f": "x" })
    yield* fails(backend.write("/d", "two", { create: true }), "write over a folder", "AlreadyExists", "IsDirectory")
  }),
  rule("write fails where there is no place for a file, and leaves nothing", function* (backend) {
    yield* putFiles(backend, { "/d/f": "x" })
    yield* fails(backend.write("/d", "y"), "write onto a folder", "IsDirectory")
    yield* fails(backend.write("/", "y"), "write onto the root", "IsDirectory")
    yield* fails(backend.write("/d/f/g", "y"), "write through a file", "NotDirectory")
    yield* fails(backend.write("/d/f/g/h/i", "y"), "write deep through a file", "NotDirectory")
    yield* expect(yield* listFiles(backend), ["/d/f"], "the files")
    yield* expect(yield* listPaths(backend, "/"), ["/d"], "the root")
  }),
  rule("texts of any characters are kept", function* (backend) {
    const every = Array.from({ length: 0x300 }, (_, point) => String.fromCodePoint(point)).join("")
    for (const text of [every, "\0", "\u{10FFFF}\uFFFD\uFFFF", "EOF\nEOT\n'\"'\"'\n$(id)`id`\n", "-n -e \\n", "\r"]) {
      yield* backend.write("/any", text)
      yield* assert((yield* readWhole(backend, "/any")) === text, "the text is kept", text.slice(0, 20))
    }
    const half = yield* runWithoutDefect(backend.write("/half", "a\ud800b"), "a write of half a surrogate pair")
    if (half._tag === "Success") {
      yield* expect(
        (yield* backend.read("/half")).version,
        half.success.version,
        "its version is that of what was written"
      )
    }
  }),
  ...edits.map(
    ({ after, before, edits: replacements, lines, name, replaced }) =>
      [
        `edit: ${name}`,
        Effect.fnUntraced(function* (backend: Service) {
          yield* backend.write("/e.txt", before)
          const edited = yield* backend.edit("/e.txt", replacements)
          yield* expect(yield* readWhole(backend, "/e.txt"), after, "the text after")
          yield* expect(
            [edited.path, edited.replaced, numerically(edited.lines)],
            ["/e.txt", replaced, lines],
            "the path, how many places, and their lines in the new file"
          )
        })
      ] as const
  ),
  rule("edit is all or nothing", function* (backend) {
    const { version } = yield* backend.write("/e.txt", "one two\n")
    const failing = backend.edit("/e.txt", [
      { old: "one", new: "1" },
      { old: "three", new: "3" }
    ])
    yield* fails(failing, "an edit whose second replacement is not there", "NoMatch")
    yield* expect(yield* readWhole(backend, "/e.txt"), "one two\n", "the file is as it was")
    yield* expect((yield* backend.read("/e.txt")).version, version, "and has its version")
  }),
  rule("edit fails for what is there several times, with their lines", function* (backend) {
    yield* backend.write("/e.txt", "x = 1\ny = 2\nx = 1\nx = 1; x = 1\n")
    const reason = yield* fails(backend.edit("/e.txt", [{ old: "x = 1", new: "x" }]), "it", "NotUnique")
    yield* expect([reason.count, numerically(reason.lines)], [4, [1, 3, 4]], "how many times, and where")
  }),
  rule("edit fails for what can't be meant", function* (backend) {
    yield* putFiles(backend, { "/e.txt": "abc\n", "/d/f": "x" })
    for (const replaceAll of [false, true]) {
      const empty = yield* fails(
        backend.edit("/e.txt", [{ old: "", new: "x", replaceAll }]),
        "an empty `old`",
        "NoMatch"
      )
      yield* assert((empty.hint ?? "") !== "", "it says what to do", empty)
      const equal = yield* fails(
        backend.edit("/e.txt", [{ old: "b", new: "b", replaceAll }]),
        "`old` is `new`",
        "NoMatch"
      )
      yield* assert((equal.hint ?? "") !== "", "it says what to do", equal)
      yield* fails(backend.edit("/e.txt", [{ old: "nowhere", new: "x", replaceAll }]), "no match", "NoMatch")
    }
    yield* fails(backend.edit("/none", [{ old: "a", new: "b" }]), "an edit of nothing", "NotFound")
    yield* fails(backend.edit("/d", [{ old: "a", new: "b" }]), "an edit of a folder", "IsDirectory")
    yield* runWithoutDefect(backend.edit("/e.txt", []), "an edit without replacements")
    yield* expect(yield* readWhole(backend, "/e.txt"), "abc\n", "the file is as it was")
    yield* putFiles(backend, { "/empty": "" })
    yield* fails(backend.edit("/empty", [{ old: "a", new: "b" }]), "an edit of an empty file", "NoMatch")
  }),
  ...nearly.map(
    ([name, before, old, line]) =>
      [
        `edit says where a text is that differs by ${name}`,
        Effect.fnUntraced(function* (backend: Service) {
          yield* backend.write("/e.txt", before)
          const reason = yield* fails(backend.edit("/e.txt", [{ old, new: "x" }]), "it", "NoMatch")
          yield* assert(new RegExp(`\\b${line}\\b`).test(reason.hint ?? ""), `the hint names line ${line}`, reason.hint)
        })
      ] as const
  ),
  ["a version stands for a content, and a stale one is a Conflict", versions],
  rule("a version lasts while other files change and operations fail", function* (backend) {
    const { version } = yield* backend.write("/s.txt", "same")
    yield* backend.write("/other.txt", "other")
    yield* runWithoutDefect(backend.edit("/s.txt", [{ old: "not there", new: "x" }]), "an edit that fails")
    yield* expect(
      (yield* readText(backend, "/s.txt")).version,
      version,
      "other writes and failures leave a version alone"
    )
    yield* expect((yield* readBytes(backend, "/s.txt")).length, 4, "and the content")
  })
]
