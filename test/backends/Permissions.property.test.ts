import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Approval, type Backend, type Ruling } from "effect-deepagents"
import { MemoryBackend, Permissions } from "effect-deepagents/backends"
import type { TestBackend } from "effect-deepagents/testing"
import * as fc from "fast-check"
import type { Rules as CompiledRules } from "../../src/backends/internal/permissions/model.ts"
import * as Compiled from "../../src/backends/internal/permissions/rules.ts"
import { scaled } from "../scale.ts"
import { comparable, files as filesOf, outcome } from "./CompositeBackend.requests.ts"
import { withLinks } from "./Permissions.links.ts"

type Verb = Ruling.Rule["ruling"]

const verbOf = ({ _tag }: Ruling.Ruling) => _tag.toLowerCase()

// The oracle: rules by brute force, over all paths that can come up here.

const names = ["a", "b", ".d", "c.t", "zz"]
const universe = (() => {
  let level = [""]
  const all: Array<string> = []
  for (let depth = 0; depth < 4; depth++) {
    level = level.flatMap((path) => names.map((name) => `${path}/${name}`))
    all.push(...level)
  }
  return all
})()

const fits = (pattern: ReadonlyArray<string>, path: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = pattern
  if (first === undefined) return path.length === 0
  if (first === "**") return fits(rest, path) || (path.length > 0 && fits(pattern, path.slice(1)))
  const [name, ...others] = path
  if (name === undefined) return false
  const expression = new RegExp(`^${first.replace(/\./g, "\\.").replace(/\*/g, ".*").replace(/\?/g, ".")}$`)
  return expression.test(name) && fits(rest, others)
}

const splitPath = (path: string) => path.split("/").filter((name) => name !== "")

const covers = (rule: Permissions.FileRule, path: string): boolean => {
  const whole = splitPath(path)
  const prefixes = whole.map((_, index) => whole.slice(0, index + 1))
  return rule.paths.some((glob) =>
    rule.ruling === "allow"
      ? fits(splitPath(glob), whole)
      : [[], ...prefixes].some((prefix) => fits(splitPath(glob), prefix))
  )
}

interface Rules {
  readonly rules: ReadonlyArray<Permissions.FileRule>
  readonly default: "allow" | "refuse"
}

const ruleOf = (rules: Rules, operation: "read" | "write", path: string) =>
  rules.rules.find((rule) => rule.operations.includes(operation) && covers(rule, path))

const modeOf = (rules: Rules, operation: "read" | "write", path: string): Verb =>
  ruleOf(rules, operation, path)?.ruling ?? rules.default

const modesBelow = (rules: Rules, operation: "read" | "write", path: string): ReadonlySet<Verb> => {
  const folder = path === "/" ? "/" : `${path}/`
  const below = [path, ...universe.filter((other) => other.startsWith(folder))]
  return new Set(below.map((other) => modeOf(rules, operation, other)))
}

const arbitraryName = fc.constantFrom("a", "b", ".d", "c.t")
const arbitraryPath = fc.array(arbitraryName, { minLength: 1, maxLength: 3 }).map((all) => `/${all.join("/")}`)
const arbitraryGlob = fc
  .array(fc.constantFrom("a", "b", ".d", "c.t", "*", "**", "*.t", "?", ".*"), { minLength: 1, maxLength: 3 })
  .map((all) => `/${all.join("/")}`)
const arbitraryRule: fc.Arbitrary<Permissions.FileRule> = fc.record({
  operations: fc.constantFrom<ReadonlyArray<"read" | "write">>(["read"], ["write"], ["read", "write"]),
  paths: fc.array(arbitraryGlob, { minLength: 1, maxLength: 2 }),
  ruling: fc.constantFrom<Verb>("allow", "refuse", "refuse", "ask")
})
const arbitraryRules: fc.Arbitrary<Rules> = fc.record({
  rules: fc.array(arbitraryRule, { maxLength: 4 }),
  default: fc.constantFrom("allow", "refuse")
})

/** Files by path, of which no one is in the way of another. */
const arbitraryTree = fc
  .array(fc.tuple(arbitraryPath, fc.constantFrom("hit", "hit\nhit", "miss", "")), { maxLength: 10 })
  .map((pairs) => {
    const tree: Record<string, string> = {}
    for (const [path, text] of pairs) {
      const isFree = Object.keys(tree).every(
        (other) => !`${other}/`.startsWith(`${path}/`) && !`${path}/`.startsWith(`${other}/`)
      )
      if (isFree) tree[path] = text
    }
    return tree
  })

const arbitraryWhere = fc.oneof(fc.constant("/"), arbitraryPath)
const arbitrarySearch = fc.record({
  path: arbitraryWhere,
  pattern: fc.constantFrom("**", "*", "a", "*.t", "a/**", "**/b", "*/*"),
  limit: fc.constantFrom(0, 1, 2, 3, 100),
  mode: fc.constantFrom<"content" | "count" | "files">("content", "count", "files")
})
const arbitraryLook: fc.Arbitrary<TestBackend.Request> = fc.oneof(
  arbitraryWhere.map((path) => ({ operation: "ls" as const, path })),
  arbitraryWhere.map((path) => ({ operation: "read" as const, path, window: {} })),
  arbitraryWhere.map((path) => ({ operation: "download" as const, path })),
  arbitrarySearch.map(({ limit, path, pattern }) => ({ operation: "glob" as const, path, query: { pattern, limit } })),
  arbitrarySearch.map(({ limit, mode, path, pattern }) => ({
    operation: "grep" as const,
    path,
    query: { pattern: "hit", glob: pattern, limit, mode }
  }))
)
const bytes = (text: string) => new TextEncoder().encode(text)
const arbitraryChange: fc.Arbitrary<TestBackend.Request> = fc.oneof(
  arbitraryWhere.map((path) => ({ operation: "write" as const, path, content: "new", options: {} })),
  arbitraryWhere.map((path) => ({ operation: "upload" as const, path, content: bytes("up") })),
  arbitraryWhere.map((path) => ({
    operation: "edit" as const,
    path,
    replacements: [{ old: "hit", new: "edited" }],
    options: {}
  })),
  fc
    .tuple(arbitraryWhere, fc.boolean())
    .map(([path, recursive]) => ({ operation: "delete" as const, path, options: { recursive } })),
  fc.tuple(arbitraryWhere, arbitraryWhere).map(([path, to]) => ({ operation: "move" as const, path, to }))
)

const holds = <A extends [unknown, ...Array<unknown>], E>(
  name: string,
  arbitraries: { readonly [K in keyof A]: fc.Arbitrary<A[K]> },
  property: (values: A) => Effect.Effect<void, E>,
  numRuns: number
) =>
  it(
    name,
    () => {
      const all = fc.asyncProperty(fc.tuple<A>(...arbitraries), (values) => Effect.runPromise(property(values)))
      return fc.assert(all, { numRuns: scaled(numRuns) })
    },
    60_000
  )

describe("decide and overlaps", () => {
  holds(
    "decide is the first rule that covers; overlaps has all that could be decided below",
    [arbitraryRules, arbitraryPath, fc.constantFrom<"read" | "write">("read", "write")],
    ([rules, path, operation]) =>
      Effect.gen(function* () {
        const policy = yield* Effect.fromResult(Compiled.compile(rules))
        for (const at of ["/", path]) {
          assert.strictEqual(verbOf(Compiled.decide(policy, operation, at)), modeOf(rules, operation, at))
          const found = new Set(Compiled.overlaps(policy, operation, at).map(verbOf))
          for (const mode of modesBelow(rules, operation, at)) assert.isTrue(found.has(mode), `${mode} below ${at}`)
        }
      }),
    300
  )
})

/** A backend's files from behind the rules. */
const viewBehind = (rules: Rules, policy: CompiledRules, result: unknown, request: TestBackend.Request): unknown => {
  const asked = ruleOf(rules, "read", request.path)
  const isSeen = (path: string, kind: string): boolean => {
    if (kind === "directory") return !Compiled.overlaps(policy, "read", path).every(Compiled.isRefusal)
    const mode = modeOf(rules, "read", path)
    return request.operation === "grep"
      ? mode === "allow" || (mode === "ask" && ruleOf(rules, "read", path) === asked)
      : mode !== "refuse"
  }
  const { entries, files } = result as {
    entries?: ReadonlyArray<Backend.Entry>
    files?: ReadonlyArray<Backend.GrepFile>
  }
  return entries === undefined
    ? { files: (files ?? []).filter(({ path }) => isSeen(path, "file")) }
    : { entries: entries.filter(({ kind, path }) => isSeen(path, kind)) }
}

/** Cuts results as a backend does that never had more. */
const cutResult = (result: unknown, request: TestBackend.Request): unknown => {
  const { entries, files } = result as {
    entries?: ReadonlyArray<Backend.Entry>
    files?: ReadonlyArray<Backend.GrepFile>
  }
  const limit = request.operation === "grep" || request.operation === "glob" ? (request.query.limit ?? 1_000) : Infinity
  if (entries !== undefined) {
    return entries.length > limit ? { entries: entries.slice(0, limit), truncated: "limit" } : { entries }
  }
  const isContent = request.operation === "grep" && request.query.mode === "content"
  const kept: Array<unknown> = []
  let room = limit
  for (const file of files ?? []) {
    const weight = isContent ? file.count : 1
    if (weight > room) {
      if (room > 0) kept.push({ ...file, count: room, matches: file.matches.slice(0, room) })
      return { files: kept, truncated: "limit" }
    }
    kept.push(file)
    room -= weight
  }
  return { files: kept }
}

const isLook = (request: TestBackend.Request) =>
  request.operation === "ls" || request.operation === "glob" || request.operation === "grep"

/** Whether the oracle says that an operation may be done, as far as it can be said without looking. */
const allowedPart = (rules: Rules, request: TestBackend.Request, isDirectory: boolean): "all" | "some" | "none" => {
  const mode = (operation: "read" | "write", path: string) => {
    if (modeOf(rules, operation, path) === "refuse") return "none"
    if (!isDirectory || (request.operation !== "delete" && request.operation !== "move")) return "all"
    return modesBelow(rules, operation, path).has("refuse") ? "none" : "some"
  }
  const all = (...modes: ReadonlyArray<"all" | "some" | "none">) =>
    modes.includes("none") ? "none" : modes.includes("some") ? "some" : "all"
  switch (request.operation) {
    case "ls":
    case "glob":
    case "grep":
      return [...modesBelow(rules, "read", request.path)].every((one) => one === "refuse") ? "none" : "some"
    case "read":
    case "download":
      return mode("read", request.path)
    case "write":
    case "upload":
    case "delete":
      return mode("write", request.path)
    case "edit":
      return all(mode("write", request.path), mode("read", request.path))
    case "move":
      return all(mode("read", request.path), mode("write", request.path), mode("write", request.to))
  }
}

const approving = Effect.provideService(Approval.Approvals, {
  decide: (request) => Effect.succeed(Approval.approve(request))
})

describe("behind rules", () => {
  holds(
    "what is allowed is done as without rules, what is denied is not; what is seen is what is left",
    [arbitraryRules, arbitraryTree, fc.array(fc.oneof(arbitraryLook, arbitraryChange), { maxLength: 12 })],
    ([rules, tree, requests]) =>
      Effect.gen(function* () {
        const [real, twin] = [yield* MemoryBackend.make({ files: tree }), yield* MemoryBackend.make({ files: tree })]
        const guarded = yield* Permissions.wrap(real, rules)
        const policy = yield* Effect.fromResult(Compiled.compile(rules))
        for (const request of requests) {
          const label = JSON.stringify(request)
          const isDirectory = Result.isSuccess(yield* Effect.result(twin.ls(request.path)))
          const may = allowedPart(rules, request, isDirectory)
          const found = yield* approving(outcome(guarded, request))
          const isDenied = "failed" in found && found.failed === "PermissionDenied"
          if (may === "none") {
            // Whether rules leave anything below is not always known: then directories show, and no files.
            const shown =
              isLook(request) &&
              "ok" in found &&
              !JSON.stringify(found)
                .replaceAll(/{[^{}]*"kind":"directory"[^{}]*}/g, "")
                .includes('"path"')
            assert.isTrue(isDenied || shown, `${label} ${JSON.stringify(found)}`)
            continue
          }
          // Of a directory, more may be refused than necessary, since possible children count.
          if (may === "some" && !isLook(request) && isDenied) continue
          const full =
            isLook(request) && "query" in request
              ? { ...request, query: { ...request.query, limit: 100_000 } }
              : request
          const expected = yield* outcome(twin, full)
          if (!isLook(request)) assert.deepStrictEqual(found, expected, label)
          else if ("ok" in expected) {
            assert.deepStrictEqual(
              found,
              { ok: comparable(cutResult(viewBehind(rules, policy, expected.ok, request), request)) },
              label
            )
          } else if (modeOf(rules, "read", request.path) !== "refuse") assert.deepStrictEqual(found, expected, label)
          else
            assert.deepStrictEqual(found, { ok: request.operation === "grep" ? { files: [] } : { entries: [] } }, label)
        }
        assert.deepStrictEqual(yield* filesOf(real), yield* filesOf(twin))
      }),
    250
  )

  holds(
    "who may not read a file can't tell what is in it, how large it is, or whether it is there",
    [
      arbitraryRules,
      arbitraryTree,
      fc.array(arbitraryLook, { minLength: 1, maxLength: 20 }),
      fc.array(fc.tuple(arbitraryPath, fc.constantFrom("hit", "longer, and with a hit\nhit")), { maxLength: 8 })
    ],
    ([rules, tree, requests, others]) =>
      Effect.gen(function* () {
        const isHidden = (path: string) => modeOf(rules, "read", path) === "refuse"
        const shown = Object.entries(tree).filter(([path]) => !isHidden(path))
        const policy = yield* Effect.fromResult(Compiled.compile(rules))
        /** A passable directory exists if something in it is visible. */
        const fitsIn = ([path]: readonly [string, string]) => {
          const folders = splitPath(path)
            .slice(0, -1)
            .map(
              (_, index) =>
                `/${splitPath(path)
                  .slice(0, index + 1)
                  .join("/")}`
            )
          return (
            isHidden(path) &&
            shown.every(([other]) => !`${path}/`.startsWith(`${other}/`) && !`${other}/`.startsWith(`${path}/`)) &&
            folders.every(
              (folder) =>
                shown.some(([other]) => other.startsWith(`${folder}/`)) ||
                Compiled.overlaps(policy, "read", folder).every(Compiled.isRefusal)
            )
          )
        }
        const hidden: Record<string, string> = {}
        for (const [path, text] of others.filter(fitsIn)) {
          const clash = Object.keys(hidden).some(
            (other) => `${other}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${other}/`)
          )
          if (!clash) hidden[path] = text
        }
        const wrapped = (contents: Readonly<Record<string, string | Uint8Array>>) =>
          Effect.flatMap(MemoryBackend.make({ files: contents }), (backend) => Permissions.wrap(backend, rules))
        const without = yield* wrapped(Object.fromEntries(shown))
        const withHidden = yield* wrapped({ ...Object.fromEntries(shown), ...hidden })
        for (const request of requests) {
          const label = `${JSON.stringify(request)} beside ${JSON.stringify(hidden)}`
          assert.deepStrictEqual(
            yield* approving(outcome(withHidden, request)),
            yield* approving(outcome(without, request)),
            label
          )
        }
      }),
    250
  )

  const arbitraryLinks = fc.array(
    fc.tuple(arbitraryPath, fc.oneof(arbitraryPath, fc.constant("/"), fc.constant("/../out"))),
    { maxLength: 5 }
  )

  holds(
    "no links lead around the rules: denied files are not changed, and what they hold is never told",
    [
      arbitraryRules,
      arbitraryTree,
      arbitraryLinks,
      fc.array(fc.oneof(arbitraryLook, arbitraryChange), { maxLength: 15 })
    ],
    ([rules, tree, linked, requests]) =>
      Effect.gen(function* () {
        const files = Object.fromEntries(Object.keys(tree).map((path) => [path, `hit secret of ${path}\nhit`]))
        const links: Record<string, string> = {}
        for (const [path, target] of linked) {
          const isFree = [...Object.keys(files), ...Object.keys(links)].every(
            (other) => !`${other}/`.startsWith(`${path}/`) && !`${path}/`.startsWith(`${other}/`)
          )
          if (isFree) links[path] = target
        }
        const { backend, stored } = withLinks(files, links)
        const guarded = yield* Permissions.wrap(backend, rules)
        const before = stored()
        const denied = (operation: "read" | "write") =>
          Object.keys(before).filter((path) => modeOf(rules, operation, path) === "refuse")
        for (const request of requests) {
          const found = JSON.stringify(yield* approving(outcome(guarded, request)))
          for (const path of denied("read")) assert.notInclude(found, `secret of ${path}\\n`, JSON.stringify(request))
          const after = stored()
          for (const path of denied("write")) assert.strictEqual(after[path], before[path], JSON.stringify(request))
        }
      }),
    500
  )
})
