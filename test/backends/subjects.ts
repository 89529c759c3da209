/** The layers under the conformance suite, and actions behind their backs. */
import { execFile, execFileSync, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { Context, Effect, Layer, Queue, type Scope, Stream } from "effect"
import { Sandbox } from "effect-deepagents"
import { CustomSandbox } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import type * as Subject from "../../src/testing/conformance/internal/backend/subject.ts"
import { bundle } from "../bundle.ts"

/** Runs a program of the machine. */
const program = (name: string, args: ReadonlyArray<string>) => execFileSync(name, args, { stdio: "ignore" })

/** A folder for one check, and one beside it that nothing may touch. */
export class Folder extends Context.Service<Folder, { readonly root: string; readonly outside: string }>()(
  "test/Folder"
) {}

/** A folder in memory if there is room, so that nothing waits for a disk; else the usual place. */
const temporary = ((): string => {
  const shared = "/dev/shm"
  const found = fs.existsSync(shared) ? fs.statfsSync(shared) : undefined
  return found !== undefined && found.bavail * found.bsize > 1_000_000_000 ? shared : os.tmpdir()
})()

const foldersIn = (parent: string) => {
  const folders = { root: path.join(parent, "root"), outside: path.join(parent, "outside") }
  // Made for everybody: a check may go on as somebody else.
  for (const folder of [parent, folders.root, folders.outside]) {
    fs.mkdirSync(folder, { recursive: true })
    fs.chmodSync(folder, 0o755)
  }
  return folders
}

export const folder: Layer.Layer<Folder> = Layer.effect(
  Folder,
  Effect.acquireRelease(
    Effect.sync(() => foldersIn(fs.mkdtempSync(path.join(temporary, "conformance-")))),
    ({ root }) => Effect.sync(() => fs.rmSync(path.dirname(root), { recursive: true, force: true }))
  )
)

const diskSize = 4 * 1024 * 1024

/** A folder on a disk of 4 MiB. */
export const smallDisk: Layer.Layer<Folder> = Layer.effect(
  Folder,
  Effect.acquireRelease(
    Effect.sync(() => {
      const parent = fs.mkdtempSync(path.join(os.tmpdir(), "conformance-disk-"))
      program("mount", ["-t", "tmpfs", "-o", `size=${diskSize}`, "tmpfs", parent])
      return foldersIn(parent)
    }),
    ({ root }) =>
      Effect.sync(() => {
        program("umount", ["-l", path.dirname(root)])
        fs.rmdirSync(path.dirname(root))
      })
  )
)

/** Whether this process may mount a disk, which takes a superuser of a real machine. */
export const canMount = ((): boolean => {
  const parent = fs.mkdtempSync(path.join(os.tmpdir(), "conformance-mount-"))
  try {
    program("mount", ["-t", "tmpfs", "-o", "size=4096", "tmpfs", parent])
    program("umount", [parent])
    return true
  } catch {
    return false
  } finally {
    fs.rmSync(parent, { recursive: true, force: true })
  }
})()

const kindOf = (found: fs.Stats): Subject.FoundEntry["kind"] =>
  found.isFile() ? "file" : found.isDirectory() ? "directory" : found.isSymbolicLink() ? "link" : "other"

/** The files of the machine, by node. */
export const host: Subject.Host<Folder> = {
  folders: Folder,
  write: (at, content) =>
    Effect.sync(() => {
      fs.mkdirSync(path.dirname(at), { recursive: true })
      fs.writeFileSync(at, content)
    }),
  link: (at, to) => Effect.sync(() => fs.symlinkSync(to, at)),
  pipe: (at) => Effect.sync(() => void program("mkfifo", [at])),
  chmod: (at, mode) => Effect.sync(() => fs.chmodSync(at, mode)),
  remove: (at) => Effect.sync(() => fs.rmSync(at, { recursive: true, force: true })),
  look: (at) =>
    Effect.sync(() => {
      const found = fs.lstatSync(at, { throwIfNoEntry: false })
      return found === undefined ? undefined : { kind: kindOf(found), mode: found.mode & 0o777 }
    }),
  read: (at) => Effect.sync(() => fs.readFileSync(at)),
  list: (at) => Effect.sync(() => fs.readdirSync(at)),
  resistsRaces: true
}

/** Another process that counts. */
export const counter: Subject.Counter<Folder> = (at, times) =>
  Effect.flatMap(Folder, ({ root }) =>
    Effect.promise(() =>
      promisify(execFile)(process.execPath, [
        bundle(new URL("children/count.ts", import.meta.url)),
        root,
        at,
        String(times)
      ])
    )
  )

/** Another layer over the same folder. */
export const again: Subject.Again<Folder> = Effect.flatMap(Folder, ({ root }) =>
  Effect.orDie(FilesystemBackend.make({ root: `${root}/../root/`, ripgrep: false }))
)

const nobody = 65_534

/** Closes a folder. To a superuser none is closed: the process is nobody meanwhile. */
export const deny = (folderPath: string): Effect.Effect<void, never, Folder | Scope.Scope> =>
  Effect.flatMap(Folder, ({ root }) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        fs.chmodSync(path.join(root, folderPath), 0)
        if (process.getuid?.() === 0) process.seteuid?.(nobody)
      }),
      () =>
        Effect.sync(() => {
          if (process.getuid?.() === 0) process.seteuid?.(0)
          fs.chmodSync(path.join(root, folderPath), 0o755)
        })
    )
  )

/** Fills the disk that the folder is on. */
export const fillDisk = (): Effect.Effect<void, never, Folder> =>
  Effect.map(Folder, ({ outside }) => {
    const file = fs.openSync(path.join(outside, "filler"), "w")
    for (const size of [65_536, 4096, 1]) {
      try {
        for (;;) fs.writeSync(file, Buffer.alloc(size))
      } catch {
        // It is full.
      }
    }
    fs.closeSync(file)
  })

/** Makes the files of a large folder without waiting for the disk. */
export const plant = (files: Readonly<Record<string, string>>): Effect.Effect<void, never, Folder> =>
  Effect.map(Folder, ({ root }) => {
    for (const [at, content] of Object.entries(files)) {
      if (!fs.existsSync(path.dirname(root + at))) fs.mkdirSync(path.dirname(root + at), { recursive: true })
      fs.writeFileSync(root + at, content)
    }
  })

export const huge: Subject.Huge<Folder> = {
  plant: (at, line, times) =>
    Effect.map(Folder, ({ root }) => {
      const perChunk = Math.ceil(1_000_000 / line.length)
      const file = fs.openSync(path.join(root, at), "w")
      for (let left = times; left > 0; left -= perChunk) fs.writeSync(file, line.repeat(Math.min(left, perChunk)))
      fs.closeSync(file)
    }),
  memory: Effect.sync(() => process.memoryUsage.rss())
}

/** Folders for whose shells this machine is closed: they run as nobody. */
const closed = new Set<string>()

/** {@link deny} for backends that do everything by a shell: it takes back the rights that the process gave away. */
export const denyShell = (folderPath: string): Effect.Effect<void, never, Folder | Scope.Scope> =>
  Effect.flatMap(Folder, ({ root }) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        fs.chmodSync(path.join(root, folderPath), 0)
        closed.add(root)
      }),
      () =>
        Effect.sync(() => {
          closed.delete(root)
          fs.chmodSync(path.join(root, folderPath), 0o755)
        })
    )
  )

/** By whom something is done in a folder. */
const by = (root: string) => (closed.has(root) && process.getuid?.() === 0 ? { uid: nobody } : {})

const start = (root: string, command: string) =>
  Effect.try(() =>
    spawn("/bin/sh", ["-c", command], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      ...by(root)
    })
  )

const run = (root: string, command: string) =>
  Effect.flatMap(start(root, command), (child) =>
    Effect.callback<{ readonly output: string; readonly exitCode: number }>((resume) => {
      const chunks: Array<Buffer> = []
      child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk))
      child.stderr.resume()
      child.on("close", (code) =>
        resume(Effect.succeed({ output: Buffer.concat(chunks).toString(), exitCode: code ?? 137 }))
      )
      return Effect.sync(() => void child.kill("SIGKILL"))
    })
  )

const pieces = (root: string, command: string) =>
  Stream.callback<{ readonly channel: "stdout" | "stderr"; readonly text: string }, unknown>((queue) =>
    Effect.acquireRelease(
      Effect.map(start(root, command), (child) => {
        for (const channel of ["stdout", "stderr"] as const) {
          child[channel].setEncoding("utf8")
          child[channel].on("data", (text: string) => Queue.offerUnsafe(queue, { channel, text }))
        }
        child.on("close", () => Queue.endUnsafe(queue))
        return child
      }),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    )
  )

/** Reads or writes as the owner of the folder. */
const asWhoever = <A>(root: string, act: () => A) =>
  Effect.try(() => {
    const { uid } = by(root) as { readonly uid?: number }
    if (uid === undefined) return act()
    process.seteuid?.(uid)
    try {
      return act()
    } finally {
      process.seteuid?.(0)
    }
  })

/** A sandbox by a shell of this machine, and by nothing else. */
export const shellSandbox = (root: string, streams: boolean) =>
  Sandbox.layer(
    CustomSandbox.make(
      {
        id: "shell",
        execute: (command) => run(root, command),
        executeStream: streams ? (command) => pieces(root, command) : undefined,
        write: (at, content) => asWhoever(root, () => fs.writeFileSync(at, content)),
        read: (at) => asWhoever(root, () => new Uint8Array(fs.readFileSync(at)))
      },
      { root }
    )
  )
