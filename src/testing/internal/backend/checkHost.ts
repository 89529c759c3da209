/**
 * What a backend does with what is on the disk without its doing: links, pipes, changes, files that are refused or huge,
 * a disk that is full.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../core/Backend.ts"
import { everyOperation } from "./checkPaths.ts"
import {
  allFiles,
  bytesAt,
  bytesOf,
  ends,
  fails,
  fill,
  hold,
  readText,
  type Rules,
  same,
  textAt,
  within
} from "./hold.ts"
import type { Deny, FillDisk, Host, Huge, ManyFiles } from "./subject.ts"

const kindAt = (backend: Service, folder: string, path: string) =>
  Effect.map(backend.ls(folder), ({ entries }) => entries.find((entry) => entry.path === path)?.kind)

const kindOf = <H>(host: Host<H>, path: string) => Effect.map(host.look(path), (found) => found?.kind)

const onHost = <H>(host: Host<H>, path: string) =>
  Effect.map(host.read(path), (bytes) => new TextDecoder().decode(bytes))

/** Links to what is inside: followed to be read and written, and left as they are. */
const inside = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const { root } = yield* host.folders
  yield* fill(backend, { "/real/file.txt": "text\n", "/real/deep/other.txt": "other" })
  yield* host.link(`${root}/to-file`, "real/file.txt")
  yield* host.link(`${root}/absolute`, `${root}/real/file.txt`)
  yield* host.link(`${root}/chain`, "to-file")
  yield* host.link(`${root}/real/deep/up`, "../file.txt")
  yield* host.link(`${root}/to-folder`, "real")
  for (const path of ["/to-file", "/absolute", "/chain", "/real/deep/up", "/to-folder/file.txt"]) {
    yield* same(yield* textAt(backend, path), "text\n", `download by ${path}`)
    const { version } = yield* readText(backend, path)
    yield* backend.edit(path, [{ old: "text", new: `text by ${path}` }], { version })
    yield* same(yield* onHost(host, `${root}/real/file.txt`), `text by ${path}\n`, `edit by ${path}`)
    yield* backend.write(path, "text\n")
    yield* same(yield* onHost(host, `${root}/real/file.txt`), "text\n", `write by ${path}`)
  }
  for (const name of ["to-file", "absolute", "chain", "real/deep/up", "to-folder"])
    yield* same(yield* kindOf(host, `${root}/${name}`), "link", `${name} is a link still`)
  for (const [name, kind] of [
    ["to-file", "file"],
    ["chain", "file"],
    ["to-folder", "directory"]
  ])
    // prettier-ignore
    yield* same(yield* kindAt(backend, "/", `/${name}`), kind, `ls says where ${name} leads`)
  yield* backend.write("/to-folder/new.txt", "new")
  yield* same(yield* onHost(host, `${root}/real/new.txt`), "new", "a new file in a folder that is a link")
  const real = ["/real/deep/other.txt", "/real/file.txt", "/real/new.txt"]
  yield* same(yield* allFiles(backend), real, "glob follows no links")
  const grepped = yield* backend.grep({ pattern: "e", mode: "files" })
  yield* same(
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
  const done = results.flatMap((result, index) => (result._tag === "Success" ? [`line ${index}`] : []))
  yield* same(lines.toSorted(), done.toSorted(), "edits by links and by the file itself at once are all there")

  yield* backend.delete("/to-folder", { recursive: true })
  yield* backend.delete("/chain")
  yield* backend.move("/to-file", "/real/moved")
  yield* same(yield* kindOf(host, `${root}/real/moved`), "link", "what was moved is the link")
  yield* same(yield* kindOf(host, `${root}/to-folder`), undefined, "what was deleted is the link")
  yield* same(yield* allFiles(backend), real, "what they led to is there")
})

/** Edits until the file was not changed in between. */
const addLine = (backend: Service, path: string, index: number) =>
  Effect.retry(
    Effect.flatMap(readText(backend, path), ({ text, version }) =>
      backend.write(path, `${text}\nline ${index}`, { version })
    ),
    { while: (error) => error._tag === "BackendError" && error.reason._tag === "Conflict", times: 100 }
  )

/** Links out of the root: nothing is reached by them, whatever the operation. */
const outside = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const folders = yield* host.folders
  const beside = folders.outside.slice(folders.outside.lastIndexOf("/") + 1)
  yield* host.write(`${folders.outside}/secret.txt`, bytesOf("secret\n"))
  yield* host.write(`${folders.outside}/in/secret.txt`, bytesOf("secret\n"))
  yield* fill(backend, { "/there.txt": "there", "/d/e/f.txt": "f", "/gone/x": "x" })
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
    yield* same(yield* kindAt(backend, path.slice(0, path.lastIndexOf("/")), path), "link", `ls says what ${path} is`)
    yield* fails(backend.write(path, "x", { create: true }), `write onto ${path}`, "OutsideRoot", "AlreadyExists")
    yield* fails(backend.move("/there.txt", path), `move onto ${path}`, "AlreadyExists", "OutsideRoot")
  }
  yield* same(yield* allFiles(backend), ["/d/e/f.txt", "/gone/x", "/there.txt"], "glob follows none")
  const found = yield* backend.grep({ pattern: "secret" })
  yield* same(found.files, [], "grep follows none")

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
  yield* same(
    (yield* backend.ls("/")).entries.map(({ path }) => path),
    ["/moved", "/there.txt"],
    "links are deleted"
  )
  yield* same((yield* host.list(folders.outside)).toSorted(), ["in", "secret.txt"], "nothing outside is made or gone")
  yield* same(yield* onHost(host, `${folders.outside}/secret.txt`), "secret\n", "or changed")
  yield* same(yield* onHost(host, `${folders.outside}/in/secret.txt`), "secret\n", "or changed deeper")
})

const loops = Effect.fnUntraced(function* <H>(backend: Service, host: Host<H>) {
  const { root } = yield* host.folders
  yield* fill(backend, { "/d/file.txt": "text" })
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
  yield* same(yield* textAt(backend, "/d/root/d/same/d/file.txt"), "text", "a link to the root leads to the root")
  yield* same(yield* kindAt(backend, "/d", "/d/root"), "directory", "it is a folder")
  yield* same(yield* kindAt(backend, "/", "/self"), "link", "what goes round is a link")
  yield* same(yield* allFiles(backend), ["/d/file.txt"], "glob goes round nothing")
  yield* same((yield* backend.grep({ pattern: "text" })).files.length, 1, "grep goes round nothing")
  yield* backend.delete("/self")
  yield* backend.move("/a", "/c")
  yield* backend.delete("/d/same", { recursive: true })
  yield* same(yield* allFiles(backend), ["/d/file.txt"], "a recursive delete of a link to the root deletes the link")
  yield* backend.delete("/d", { recursive: true })
  yield* same(
    (yield* backend.ls("/")).entries.map(({ path }) => path),
    ["/b", "/c"],
    "what is left"
  )
})

/** A file and a link out of the root take turns at one path, while others read and write it. */
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
    const read = yield* Effect.result(backend.read("/turns"))
    yield* hold(!JSON.stringify(read).includes('"secret"'), "read gives nothing from outside", read)
    const [got] = yield* backend.download(["/turns"])
    const text = got?.ok === true ? new TextDecoder().decode(got.value) : ""
    yield* hold(text !== "secret", "download gives nothing from outside", text)
    yield* ends(backend.write("/turns", "public"), "a write at such a time")
    yield* ends(backend.edit("/turns", [{ old: "secret", new: "edited" }]), "an edit at such a time")
    yield* ends(backend.upload([{ path: "/turns", content: bytesOf("public") }]), "an upload at such a time")
  }
  yield* Fiber.interrupt(swapping)
  yield* same(yield* onHost(host, `${folders.outside}/secret.txt`), "secret", "nothing outside is changed")
  yield* same(yield* host.list(folders.outside), ["secret.txt"], "or made")
})

/** Checks that need the files behind a backend. */
export const hostRules = <H>(): Rules<Service, Host<H>, H | Scope.Scope> => [
  ["a link to what is inside is followed, and stays", inside],
  ["a link out of the root leads nowhere, at any depth, for any operation", outside],
  ["links that go round hang nothing", loops],
  [
    "a link to nothing inside is a link, and can be deleted",
    Effect.fnUntraced(function* (backend, host) {
      const { root } = yield* host.folders
      yield* host.link(`${root}/link`, "nothing")
      yield* same(yield* kindAt(backend, "/", "/link"), "link", "ls says so")
      yield* fails(backend.read("/link"), "read of it", "NotFound", "OutsideRoot")
      yield* same(yield* allFiles(backend), [], "it is no file")
      yield* backend.delete("/link")
      yield* same((yield* backend.ls("/")).entries, [], "it is gone")
    })
  ],
  [
    "a change behind the back of a backend is a Conflict, at the same size",
    Effect.fnUntraced(function* (backend, host) {
      const { root } = yield* host.folders
      const { version } = yield* backend.write("/f", "aaa")
      yield* host.write(`${root}/f`, bytesOf("bbb"))
      yield* fails(backend.write("/f", "ccc", { version }), "a write with the old version", "Conflict")
      yield* fails(backend.edit("/f", [{ old: "bbb", new: "c" }], { version }), "an edit with it", "Conflict")
      yield* same(yield* textAt(backend, "/f"), "bbb", "the change is there")
    })
  ],
  [
    "write and edit keep the mode of a file",
    Effect.fnUntraced(function* (backend, host) {
      const { root } = yield* host.folders
      yield* fill(backend, { "/run.sh": "echo one\n" })
      yield* host.chmod(`${root}/run.sh`, 0o754)
      yield* backend.edit("/run.sh", [{ old: "one", new: "two" }])
      yield* same((yield* host.look(`${root}/run.sh`))?.mode, 0o754, "after an edit")
      yield* backend.write("/run.sh", "echo three\n")
      yield* same((yield* host.look(`${root}/run.sh`))?.mode, 0o754, "after a write")
      yield* backend.upload([{ path: "/run.sh", content: bytesOf("echo four\n") }])
      yield* same((yield* host.look(`${root}/run.sh`))?.mode, 0o754, "after an upload")
    })
  ],
  [
    "nothing but the file is left on the disk by writes, edits and moves, done or failed",
    Effect.fnUntraced(function* (backend, host) {
      const { outside: beside, root } = yield* host.folders
      yield* backend.write("/d/f", "one")
      yield* backend.edit("/d/f", [{ old: "one", new: "two" }])
      yield* backend.upload([{ path: "/d/f", content: bytesOf("three") }])
      yield* Effect.ignore(backend.edit("/d/f", [{ old: "one", new: "two" }]))
      yield* Effect.ignore(backend.write("/d/f", "x", { create: true }))
      yield* Effect.ignore(backend.write("/d", "x"))
      yield* Effect.ignore(backend.write("/d/f", "x", { version: "stale" }))
      yield* Effect.ignore(backend.move("/none", "/d/g"))
      yield* same(yield* host.list(`${root}/d`), ["f"], "the folder")
      yield* same(yield* host.list(root), ["d"], "the root")
      yield* same(yield* host.list(beside), [], "beside the root")
    })
  ],
  [
    "a named pipe hangs nothing",
    Effect.fnUntraced(function* (backend, host) {
      const { root } = yield* host.folders
      yield* fill(backend, { "/d/file": "text" })
      yield* host.pipe(`${root}/d/pipe`)
      const bounded = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
        within(5000, `${what} with a pipe`, Effect.timeoutOption(effect, "6 seconds"))
      for (const [operation, run] of everyOperation(backend, "/d/pipe"))
        if (!["delete", "move", "write", "upload"].includes(operation))
          yield* bounded(operation, ends(run, `${operation} of a pipe`))
      yield* bounded("grep", backend.grep({ pattern: "text" }))
      yield* same((yield* backend.grep({ pattern: "text", mode: "files" })).files.length, 1, "the file is found")
      yield* bounded("glob", backend.glob({ pattern: "**" }))
      yield* bounded("ls", backend.ls("/d"))
      yield* bounded("delete", backend.delete("/d", { recursive: true }))
    })
  ],
  [
    "names that no path can hold are no obstacle to what is beside them",
    Effect.fnUntraced(function* (backend, host) {
      const { root } = yield* host.folders
      yield* fill(backend, { "/d/file": "text" })
      yield* host.write(`${root}/d/back\\slash`, bytesOf("text"))
      yield* host.write(`${root}/~home/x`, bytesOf("text"))
      const files = yield* allFiles(backend)
      yield* hold(files.includes("/d/file"), "glob finds the file", files)
      const found = (yield* backend.grep({ pattern: "text", mode: "files" })).files.map(({ path }) => path)
      yield* hold(found.includes("/d/file"), "grep finds the file", found)
      const entries = (yield* backend.ls("/d")).entries.map(({ path }) => path)
      yield* hold(entries.includes("/d/file"), "ls gives the file", entries)
      yield* backend.delete("/d", { recursive: true })
      yield* same(yield* host.look(`${root}/d`), undefined, "a recursive delete takes them too")
    })
  ],
  [
    "ignore files and repositories above the root do not count",
    Effect.fnUntraced(function* (backend, host) {
      const { root } = yield* host.folders
      yield* host.write(`${root}/../.gitignore`, bytesOf("*\n"))
      yield* host.write(`${root}/../.ignore`, bytesOf("*\n"))
      yield* host.write(`${root}/../.git/info/exclude`, bytesOf("*\n"))
      yield* fill(backend, { "/file": "text", "/.gitignore": "x\n", "/x": "text" })
      const found = (yield* backend.grep({ pattern: "text", mode: "files" })).files.map(({ path }) => path)
      yield* same(found, ["/file"], "grep")
      const files = (yield* backend.glob({ pattern: "*" })).entries.map(({ path }) => path)
      yield* same(files, ["/.gitignore", "/file"], "glob")
    })
  ]
]

/** Checks of what happens while others change what is on the disk. */
export const raceRules = <H>(): Rules<Service, Host<H>, H | Scope.Scope> => [
  ["a file that turns into a link out of the root leaks nothing", races]
]

/** Checks with what the system refuses. */
export const denyRules = <H>(): Rules<Service, Deny<H>, H | Scope.Scope> => [
  [
    "what the system refuses is PermissionDenied, and no obstacle to what is beside it",
    Effect.fnUntraced(function* (backend, deny) {
      yield* fill(backend, { "/open/file": "text", "/closed/file": "text", "/closed/in/file": "text", "/z": "text" })
      const body = Effect.gen(function* () {
        yield* deny("/closed")
        for (const path of ["/closed/file", "/closed/in/file", "/closed/new"])
          for (const [operation, run] of everyOperation(backend, path)) {
            const tags =
              path === "/closed/new" && !["write", "upload"].includes(operation)
                ? (["PermissionDenied", "NotFound"] as const)
                : (["PermissionDenied"] as const)
            if (operation === "move" || operation === "glob") continue
            yield* fails(run, `${operation} of ${path}, which is refused`, ...tags)
          }
        yield* fails(backend.ls("/closed"), "ls of what is refused", "PermissionDenied")
        yield* fails(backend.delete("/closed", { recursive: true }), "delete of what is refused", "PermissionDenied")
        yield* fails(backend.move("/z", "/closed/z"), "move into what is refused", "PermissionDenied")
        yield* fails(backend.move("/closed/file", "/y"), "move out of what is refused", "PermissionDenied")
        const top = (yield* backend.ls("/")).entries.map(({ path }) => path)
        yield* same(top, ["/closed", "/open", "/z"], "ls of what is around it")
      })
      yield* Effect.scoped(body)
      yield* same(
        yield* allFiles(backend),
        ["/closed/file", "/closed/in/file", "/open/file", "/z"],
        "all is there when it is allowed again"
      )
    })
  ],
  [
    "searches skip what the system refuses",
    Effect.fnUntraced(function* (backend, deny) {
      yield* fill(backend, { "/open/file": "text", "/closed/file": "text", "/z": "text" })
      yield* deny("/closed")
      const open = (paths: ReadonlyArray<string>) => paths.filter((path) => !path.startsWith("/closed"))
      const found = yield* backend.grep({ pattern: "text", mode: "files" })
      yield* same(open(found.files.map(({ path }) => path)), ["/open/file", "/z"], "grep")
      yield* same(open(yield* allFiles(backend)), ["/open/file", "/z"], "glob")
    })
  ]
]

/** Checks with a disk that is full. */
export const diskRules = <H>(): Rules<Service, FillDisk<H>, H | Scope.Scope> => [
  [
    "a disk that is full leaves every file as it was, and no half of a new one",
    Effect.fnUntraced(function* (backend, fillDisk) {
      const large = "large ".repeat(50_000)
      yield* fill(backend, { "/kept.txt": "kept", "/d/other.txt": "other" })
      const { version } = yield* backend.read("/kept.txt")
      yield* fillDisk()
      yield* fails(backend.write("/kept.txt", large), "write of a file", "Unavailable")
      yield* fails(backend.edit("/kept.txt", [{ old: "kept", new: large }]), "edit of a file", "Unavailable")
      yield* fails(backend.write("/d/new.txt", large), "write of a new file", "Unavailable")
      const put = yield* backend.upload([
        { path: "/kept.txt", content: bytesOf(large) },
        { path: "/d/new.txt", content: bytesOf(large) },
        { path: "/../x", content: bytesOf(large) }
      ])
      yield* same(
        put.map((one) => (one.ok ? "ok" : one.error.reason._tag)),
        ["Unavailable", "Unavailable", "OutsideRoot"],
        "uploads"
      )
      yield* same(yield* textAt(backend, "/kept.txt"), "kept", "the old content is there")
      yield* same((yield* backend.read("/kept.txt")).version, version, "with its version")
      const entries = (yield* backend.ls("/d")).entries.map(({ path }) => path)
      yield* same(entries, ["/d/other.txt"], "there is no half of a file")
      yield* backend.delete("/d/other.txt")
      yield* fails(backend.read("/d/other.txt"), "read of what was deleted", "NotFound")
    })
  ]
]

const mebibyte = 1024 * 1024

/** Checks with files that should not be in memory as a whole. */
export const hugeRules = <H>(): Rules<Service, Huge<H>, H | Scope.Scope> => [
  [
    "a window of a file of 100 MB takes little memory",
    Effect.fnUntraced(function* (backend, huge) {
      const line = `${"0123456789".repeat(9)}\r\n`
      const times = Math.ceil((100 * mebibyte + 1) / line.length)
      yield* huge.plant("/huge.txt", line, times)
      const before = yield* huge.memory
      let most = before
      const watching = yield* Effect.forkScoped(
        Effect.forever(
          Effect.gen(function* () {
            most = Math.max(most, yield* huge.memory)
            yield* Effect.sleep("5 millis")
          })
        )
      )
      const last = yield* readText(backend, "/huge.txt", { offset: times - 1 })
      yield* same([last.startLine, last.endLine, last.totalLines], [times - 1, times, times], "the last lines")
      yield* same(last.text, `${line.trimEnd()}\n${line.trimEnd()}`, "their text")
      const first = yield* readText(backend, "/huge.txt", { limit: 3 })
      yield* same([first.startLine, first.endLine, first.size], [1, 3, times * line.length], "the first lines")
      most = Math.max(most, yield* huge.memory)
      yield* Fiber.interrupt(watching)
      yield* hold(
        most - before < 80 * mebibyte,
        "memory stays below the size of the file",
        `${most - before} bytes more`
      )
      const [got] = yield* backend.download(["/huge.txt"])
      yield* hold(got?.ok === false && got.error.reason._tag === "TooLarge", "it is too large for a download", got?.ok)
      const found = yield* backend.grep({ pattern: "nowhere", mode: "files" })
      yield* same(found.files, [], "grep has nothing to find")
    })
  ],
  [
    "a line of 100 MB is read in windows",
    Effect.fnUntraced(function* (backend, huge) {
      yield* huge.plant("/line.txt", "0123456789", 10 * mebibyte)
      const window = yield* readText(backend, "/line.txt", { column: 90 * mebibyte + 3, limit: 1 })
      yield* same([window.startLine, window.endLine, window.totalLines], [1, 1, 1], "it is one line")
      yield* same(
        window.text.slice(0, 8),
        `${"0123456789"}${"0123456789"}`.slice((90 * mebibyte + 3) % 10).slice(0, 8),
        "from that column"
      )
      yield* hold(
        window.text.length <= 256 * 1024 && window.nextColumn !== undefined,
        "a window of it",
        window.nextColumn
      )
      const found = yield* backend.grep({ pattern: "012345", mode: "content" })
      const shown = found.files.flatMap(({ matches }) => matches.map(({ text }) => text.length))
      yield* hold(
        shown.every((length) => length < 64 * 1024),
        "grep does not show all of it",
        shown
      )
    })
  ]
]

/** Checks with a folder of many files. */
export const manyRules = <H>(): Rules<Service, ManyFiles<H>, H | Scope.Scope> => [
  [
    "a folder of very many files is listed and searched in order",
    Effect.fnUntraced(function* (backend, { count, plant }) {
      const paths = Array.from({ length: count }, (_, index) => `/many/file ${index}.txt`)
      const files = Object.fromEntries(paths.map((path, index) => [path, `needle ${index % 10}\n`]))
      yield* plant === undefined ? fill(backend, files) : plant(files)
      const sorted = paths.toSorted()
      const listed = yield* backend.ls("/many")
      const names = listed.entries.map(({ path }) => path)
      yield* hold(names.length === count || listed.truncated === "limit", "ls gives all, or says so", names.length)
      yield* hold(
        names.every((path, index) => path === sorted[index]),
        "in order",
        names.slice(0, 12)
      )
      const all = yield* backend.glob({ pattern: "*.txt", limit: count })
      yield* hold(
        all.truncated === undefined && all.entries.every(({ path }, index) => path === sorted[index]),
        "glob gives all, in order",
        all.truncated
      )
      const first = yield* backend.glob({ pattern: "**/*.txt", limit: 7 })
      yield* same(
        first.entries.map(({ path }) => path),
        sorted.slice(0, 7),
        "glob gives the first ones"
      )
      yield* same(first.truncated, "limit", "and says that there are more")
      const lines = yield* backend.grep({ pattern: "needle", mode: "content", limit: 7 })
      yield* same(
        lines.files.map(({ path }) => path),
        sorted.slice(0, 7),
        "grep gives the first ones"
      )
      yield* same(lines.truncated, "limit", "and says that there are more")
      const some = yield* backend.grep({ pattern: "needle 3", mode: "count", limit: count })
      yield* same([some.files.length, some.truncated ?? "all"], [count / 10, "all"], "grep finds all")
      const order = some.files.map(({ path }) => path)
      yield* same(order.slice(0, 9), order.toSorted().slice(0, 9), "in order")
      yield* backend.move("/many", "/moved")
      yield* backend.delete("/moved", { recursive: true })
      yield* same((yield* backend.ls("/")).entries, [], "all are deleted")
      yield* hold((yield* Effect.result(bytesAt(backend, paths[0] ?? "")))._tag === "Failure", "none is left", paths[0])
    })
  ]
]
