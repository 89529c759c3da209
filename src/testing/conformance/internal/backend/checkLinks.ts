/** Checks links: those within the root are followed, those out of the root are rejected. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../../core/Backend.ts"
import { fails, assert, expect } from "../assert.ts"
import { everyOperation } from "./checkPaths.ts"
import {
  listFiles,
  bytesOf,
  runWithoutDefect,
  putFiles,
  listPaths,
  readText,
  rule,
  type Rules,
  readWhole
} from "./common.ts"
import type { Host } from "./subject.ts"

const kindAt = (backend: Service, folder: string, path: string) =>
  Effect.map(backend.ls(folder), ({ entries }) => entries.find((entry) => entry.path === path)?.kind)

const kindOf = <H>(host: Host<H>, path: string) => Effect.map(host.look(path), (entry) => entry?.kind)

const onHost = <H>(host: Host<H>, path: string) =>
  Effect.map(host.read(path), (bytes) => new TextDecoder().decode(bytes))

/** Checks that reads and writes follow links within the root, and that the links stay. */
const inside = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const { root } = yield* host.folders
  yield* putFiles(backend, { "/real/file.txt": "text\n", "/real/deep/other.txt": "other" })
  yield* host.link(`${root}/to-file`, "real/file.txt")
  yield* host.link(`${root}/absolute`, `${root}/real/file.txt`)
  yield* host.link(`${root}/chain`, "to-file")
  yield* host.link(`${root}/real/deep/up`, "../file.txt")
  yield* host.link(`${root}/to-folder`, "real")
  for (const path of ["/to-file", "/absolute", "/chain", "/real/deep/up", "/to-folder/file.txt"]) {
    yield* expect(yield* readWhole(backend, path), "text\n", `download by ${path}`)
    const { version } = yield* readText(backend, path)
    yield* backend.edit(path, [{ old: "text", new: `text by ${path}` }], { version })
    yield* expect(yield* onHost(host, `${root}/real/file.txt`), `text by ${path}\n`, `edit by ${path}`)
    yield* backend.write(path, "text\n")
    yield* expect(yield* onHost(host, `${root}/real/file.txt`), "text\n", `write by ${path}`)
  }
  for (const name of ["to-file", "absolute", "chain", "real/deep/up", "to-folder"])
    yield* expect(yield* kindOf(host, `${root}/${name}`), "link", `${name} is a link still`)
  for (const [name, kind] of [
    ["to-file", "file"],
    ["chain", "file"],
    ["to-folder", "directory"]
  ])
    // prettier-ignore
    yield* expect(yield* kindAt(backend, "/", `/${name}`), kind, `ls says where ${name} leads`)
  yield* backend.write("/to-folder/new.txt", "new")
  yield* expect(yield* onHost(host, `${root}/real/new.txt`), "new", "a new file in a folder that is a link")
  const real = ["/real/deep/other.txt", "/real/file.txt", "/real/new.txt"]
  yield* expect(yield* listFiles(backend), real, "glob follows no links")
  const grepped = yield* backend.grep({ pattern: "e", mode: "files" })
  yield* expect(
    grepped.files.map(({ path }) => path),
    real,
    "grep follows no links"
  )

  const results = yield* Effect.forEach(
    Array.from(
      { length: 8 },
      (_, index) => ["/to-file", "/real/file.txt", "/chain", "/to-folder/file.txt"][index % 4] ?? ""
    ),
    (path, index) => Effect.result(Effect.andThen(Effect.yieldNow, addLine(backend, path, index))),
    { concurrency: "unbounded" }
  )
  const lines = (yield* onHost(host, `${root}/real/file.txt`)).split("\n").filter((line) => line.startsWith("line"))
  const edits = results.flatMap((result, index) => (result._tag === "Success" ? [`line ${index}`] : []))
  yield* expect(lines.toSorted(), edits.toSorted(), "edits by links and by the file itself at once are all there")

  yield* backend.delete("/to-folder", { recursive: true })
  yield* backend.delete("/chain")
  yield* backend.move("/to-file", "/real/moved")
  yield* expect(yield* kindOf(host, `${root}/real/moved`), "link", "what was moved is the link")
  yield* expect(yield* kindOf(host, `${root}/to-folder`), undefined, "what was deleted is the link")
  yield* expect(yield* listFiles(backend), real, "what they led to is there")
})

/** Retries an edit until no conflict occurs. */
const addLine = (backend: Service, path: string, index: number) =>
  Effect.retry(
    Effect.flatMap(readText(backend, path), ({ text, version }) =>
      backend.write(path, `${text}\nline ${index}`, { version })
    ),
    { while: (error) => error._tag === "BackendError" && error.reason._tag === "Conflict", times: 100 }
  )

/** Checks that no operation reaches the target of a link out of the root. */
const outside = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const folders = yield* host.folders
  const beside = folders.outside.slice(folders.outside.lastIndexOf("/") + 1)
  yield* host.write(`${folders.outside}/secret.txt`, bytesOf("secret\n"))
  yield* host.write(`${folders.outside}/in/secret.txt`, bytesOf("secret\n"))
  yield* putFiles(backend, { "/there.txt": "there", "/d/e/f.txt": "f", "/gone/x": "x" })
  const { root } = folders
  yield* host.link(`${root}/file`, `${folders.outside}/secret.txt`)
  yield* host.link(`${root}/relative`, `../${beside}/secret.txt`)
  yield* host.link(`${root}/folder`, folders.outside)
  yield* host.link(`${root}/d/e/deep`, `../../../${beside}`)
  yield* host.link(`${root}/chain`, "folder")
  yield* host.link(`${root}/up`, "..")
  yield* host.link(`${root}/machine`, "/")
  yield* host.link(`${root}/round`, `../${root.slice(root.lastIndexOf("/") + 1)}/../${beside}/secret.txt`)
  yield* host.link(`${root}/dangling`, `${folders.outside}/new.txt`)
  yield* host.link(`${root}/via`, `d/e/deep/secret.txt`)
  yield* host.link(`${root}/gone/secret`, folders.outside)

  const links = [
    "/file",
    "/folder",
    "/d/e/deep",
    "/relative",
    "/chain",
    "/up",
    "/machine",
    "/round",
    "/dangling",
    "/via"
  ]
  const through = [
    "/folder/secret.txt",
    "/d/e/deep/in",
    "/chain/new/new.txt",
    "/folder/new.txt",
    "/d/e/deep/secret.txt",
    `/up/${beside}/secret.txt`,
    `/machine${folders.outside}/secret.txt`,
    "/machine/etc/passwd",
    "/gone/secret/secret.txt"
  ]
  for (const [index, path] of through.entries())
    for (const [operation, run] of everyOperation(backend, path))
      if (index < 3 || ["read", "write", "ls"].includes(operation))
        yield* fails(run, `${operation} of ${path}, which is behind a link out of the root`, "OutsideRoot")
  for (const [index, path] of links.entries())
    for (const [operation, run] of everyOperation(backend, path)) {
      const label = `${operation} of ${path}, which is a link out of the root`
      if (["delete", "move"].includes(operation)) continue
      if (operation === "ls") yield* fails(run, label, "OutsideRoot", "NotDirectory")
      else if (index < 3 || ["read", "write"].includes(operation)) yield* fails(run, label, "OutsideRoot")
    }
  for (const path of links) {
    yield* expect(yield* kindAt(backend, path.slice(0, path.lastIndexOf("/")), path), "link", `ls says what ${path} is`)
    yield* fails(backend.write(path, "x", { create: true }), `write onto ${path}`, "OutsideRoot", "AlreadyExists")
    yield* fails(backend.move("/there.txt", path), `move onto ${path}`, "AlreadyExists", "OutsideRoot")
  }
  yield* expect(yield* listFiles(backend), ["/d/e/f.txt", "/gone/x", "/there.txt"], "glob follows none")
  const result = yield* backend.grep({ pattern: "secret" })
  yield* expect(result.files, [], "grep follows none")

  yield* backend.delete("/gone", { recursive: true })
  yield* backend.move("/d", "/moved")
  yield* backend.move("/file", "/moved/file")
  for (const path of [
    "/relative",
    "/folder",
    "/chain",
    "/up",
    "/machine",
    "/round",
    "/dangling",
    "/via",
    "/moved/file"
  ])
    yield* backend.delete(path, { recursive: path !== "/relative" })
  yield* expect(yield* listPaths(backend, "/"), ["/moved", "/there.txt"], "links are deleted")
  yield* expect((yield* host.list(folders.outside)).toSorted(), ["in", "secret.txt"], "nothing outside is made or gone")
  yield* expect(yield* onHost(host, `${folders.outside}/secret.txt`), "secret\n", "or changed")
  yield* expect(yield* onHost(host, `${folders.outside}/in/secret.txt`), "secret\n", "or changed deeper")
})

const loops = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const { root } = yield* host.folders
  yield* putFiles(backend, { "/d/file.txt": "text" })
  yield* host.link(`${root}/self`, "self")
  yield* host.link(`${root}/a`, "b")
  yield* host.link(`${root}/b`, "a")
  yield* host.link(`${root}/d/root`, "..")
  yield* host.link(`${root}/d/same`, root)
  for (const path of ["/self", "/a", "/b", "/self/x", "/a/x"]) {
    for (const [operation, run] of everyOperation(backend, path)) {
      if (["delete", "move", "ls"].includes(operation)) continue
      yield* fails(run, `${operation} of ${path}, which goes round`, "OutsideRoot")
    }
  }
  yield* expect(yield* readWhole(backend, "/d/root/d/same/d/file.txt"), "text", "a link to the root leads to the root")
  yield* expect(yield* kindAt(backend, "/d", "/d/root"), "directory", "it is a folder")
  yield* expect(yield* kindAt(backend, "/", "/self"), "link", "what goes round is a link")
  yield* expect(yield* listFiles(backend), ["/d/file.txt"], "glob goes round nothing")
  yield* expect((yield* backend.grep({ pattern: "text" })).files.length, 1, "grep goes round nothing")
  yield* backend.delete("/self")
  yield* backend.move("/a", "/c")
  yield* backend.delete("/d/same", { recursive: true })
  yield* expect(yield* listFiles(backend), ["/d/file.txt"], "a recursive delete of a link to the root deletes the link")
  yield* backend.delete("/d", { recursive: true })
  yield* expect(yield* listPaths(backend, "/"), ["/b", "/c"], "what is left")
})

/** Swaps a file and a link out of the root at one path, during reads and writes. */
const races = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const folders = yield* host.folders
  yield* host.write(`${folders.outside}/secret.txt`, bytesOf("secret"))
  const path = `${folders.root}/turns`
  const swap = Effect.forever(
    Effect.gen(function* () {
      yield* host.remove(path)
      yield* host.link(path, `${folders.outside}/secret.txt`)
      yield* Effect.yieldNow
      yield* host.remove(path)
      yield* host.write(path, bytesOf("public"))
      yield* Effect.yieldNow
    })
  )
  const swapping = yield* Effect.forkScoped(swap)
  for (let round = 0; round < 60; round++) {
    const result = yield* Effect.result(backend.read("/turns"))
    yield* assert(!JSON.stringify(result).includes('"secret"'), "read gives nothing from outside", result)
    const [download] = yield* backend.download(["/turns"])
    const text = download?.ok === true ? new TextDecoder().decode(download.value) : ""
    yield* assert(text !== "secret", "download gives nothing from outside", text)
    yield* runWithoutDefect(backend.write("/turns", "public"), "a write at such a time")
    yield* runWithoutDefect(backend.edit("/turns", [{ old: "secret", new: "edited" }]), "an edit at such a time")
    yield* runWithoutDefect(
      backend.upload([{ path: "/turns", content: bytesOf("public") }]),
      "an upload at such a time"
    )
  }
  yield* Fiber.interrupt(swapping)
  yield* expect(yield* onHost(host, `${folders.outside}/secret.txt`), "secret", "nothing outside is changed")
  yield* expect(yield* host.list(folders.outside), ["secret.txt"], "or made")
})

/** Checks of links. */
export const linkRules = <H>(): Rules<Service, Host<H>, H | Scope.Scope> => [
  ["a link to what is inside is followed, and stays", inside],
  ["a link out of the root leads nowhere, at any depth, for any operation", outside],
  ["links that go round hang nothing", loops],
  rule("a link to nothing inside is a link, and can be deleted", function* (backend, host) {
    const { root } = yield* host.folders
    yield* host.link(`${root}/link`, "nothing")
    yield* expect(yield* kindAt(backend, "/", "/link"), "link", "ls says so")
    yield* fails(backend.read("/link"), "read of it", "NotFound", "OutsideRoot")
    yield* expect(yield* listFiles(backend), [], "it is no file")
    yield* backend.delete("/link")
    yield* expect((yield* backend.ls("/")).entries, [], "it is gone")
  })
]

/** Checks of races with other changes of the disk. */
export const raceRules = <H>(): Rules<Service, Host<H>, H | Scope.Scope> => [
  ["a file that turns into a link out of the root leaks nothing", races]
]
