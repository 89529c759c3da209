/** The file system that just-bash works on: each access is asked for. */
import type { IFileSystem } from "just-bash"
import { decode, encode } from "./encoding.ts"
import { type Code, complaint, type Fault, toError } from "./errors.ts"
import type { Answer, Call, Reply, Status } from "./messages.ts"
import { markPath, unmarked } from "./script.ts"

/** The world of a command: files, and where its output goes. */
export interface World {
  readonly ask: (call: Call) => Promise<Answer>
  readonly put: (channel: "stdout" | "stderr", bytes: Uint8Array) => Promise<void>
}

/** The treatment of links: followed, shown as links, or hidden in directories. */
export type Links = "followed" | "themselves" | "hidden"

/** A file system, and why redirections of it were refused, by their targets. */
export interface RemoteFiles {
  readonly fs: IFileSystem
  readonly complaints: ReadonlyMap<string, string>
  /** Shows links in another way while something runs. */
  readonly treat: <A>(links: Links, run: () => Promise<A>) => Promise<A>
}

const nothing = new Uint8Array()

const silent = new Set(["/dev/null", "/dev/zero", "/dev/stdin", "/dev/tty"])

const isProgram = (path: string): boolean => /^\/(?:bin|usr)(?:\/|$)/.test(path)

/** A path from another one on; a shell's `..` ends at the root. */
const resolve = (base: string, path: string): string => {
  const names: Array<string> = []
  for (const name of (path.startsWith("/") ? path : `${base}/${path}`).split("/")) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}

const isFault = (answer: Reply | Fault): answer is Fault => "code" in answer

const statOf = ({ identity, kind, mode, modifiedAt, size }: Status) => ({
  identity,
  isFile: kind === "file",
  isDirectory: kind === "directory",
  isSymbolicLink: kind === "link",
  mode,
  size,
  mtime: new Date(modifiedAt)
})

/** The files of one command line. `programs` says whether there are folders of programs already. */
export const make = ({ ask, put }: World, programs: boolean): RemoteFiles => {
  /** Sends a request. The command may stop waiting for its answer. */
  const request = (call: Call): Promise<Reply> => {
    const reply = ask(call).then(({ answer }) => (isFault(answer) ? Promise.reject(toError(answer)) : answer))
    reply.catch(() => undefined)
    return reply
  }
  const refuse = (code: Code, call: string, path: string) => Promise.reject(toError({ code, call, path }))
  const missing = (call: string, path: string) => refuse("EIO", call, path)

  let hasPrograms = programs
  const isAbsent = (path: string): boolean => !hasPrograms && isProgram(path)
  const changes = (path: string): void => {
    if (isProgram(path)) hasPrograms = true
  }

  /** Targets of redirections, as written. */
  const targets = new Map<string, string>()
  const complaints = new Map<string, string>()
  /** Targets that were opened when the shell asked for them, and targets that failed to open. */
  const opened = new Set<string>()
  const closed = new Map<string, Error>()

  const open = async (target: string): Promise<boolean> => {
    const { path, use } = unmarked(target)
    if (use === "stdout" || use === "stderr" || path.startsWith("/dev/")) return false
    changes(path)
    closed.delete(target)
    const { answer } = await ask({ op: "open", path, append: use === "add" })
    if (isFault(answer)) {
      complaints.set(targets.get(target) ?? path, complaint({ ...answer, path }))
      closed.set(target, toError(answer))
      return true
    }
    opened.add(target)
    return false
  }

  const write = async (op: "write" | "append", target: string, content: Uint8Array): Promise<void> => {
    const { path, use } = unmarked(target)
    if (use === "stdout" || path === "/dev/stdout") return put("stdout", content)
    if (use === "stderr" || path === "/dev/stderr") return put("stderr", content)
    if (silent.has(path)) return undefined
    if (opened.delete(target) && content.length === 0) return undefined
    changes(path)
    await request({ op, path, content })
    return undefined
  }

  const readTarget = async (target: string): Promise<Uint8Array> => {
    const { path } = unmarked(target)
    if (path.startsWith("/dev/") && (silent.has(path) || /^\/dev\/std(?:out|err)$/.test(path))) return nothing
    return (await request({ op: "read", path })).bytes ?? missing("open", path)
  }

  let links: Links = "followed"
  const treat = async <A>(mode: Links, run: () => Promise<A>): Promise<A> => {
    const before = links
    links = mode
    return run().finally(() => {
      links = before
    })
  }

  const stat = (op: "stat" | "lstat") => async (target: string) => {
    const { path } = unmarked(target)
    if (isAbsent(path)) return refuse("ENOENT", op, path)
    const failure = closed.get(target)
    if (failure !== undefined) return Promise.reject(failure)
    const { status } = await request({ op: links === "themselves" ? "lstat" : op, path })
    return status === undefined ? missing(op, path) : statOf(status)
  }

  const names = async (path: string) => {
    const { names: all = [] } = await request({ op: "list", path: unmarked(path).path })
    return links === "hidden" ? all.filter(({ kind }) => kind !== "link") : all
  }
  const noLinks = (call: string) => (_: string, path: string) => refuse("EPERM", call, path)
  const leading = (op: "readlink" | "realpath") => async (target: string) => {
    const { path } = unmarked(target)
    return (await request({ op, path })).path ?? missing(op, path)
  }

  const fs: IFileSystem = {
    readFile: async (path, options) => decode(await readTarget(path), options),
    readFileBuffer: readTarget,
    writeFile: (path, content, options) => write("write", path, encode(content, options)),
    appendFile: (path, content, options) => write("append", path, encode(content, options)),
    exists: async (target) => {
      const { path, use } = unmarked(target)
      if (use !== undefined) return open(target)
      return isAbsent(path) ? false : (await request({ op: "exists", path })).exists === true
    },
    stat: stat("stat"),
    lstat: stat("lstat"),
    mkdir: async (path, options) => {
      changes(path)
      await request({ op: "mkdir", path, recursive: options?.recursive === true })
    },
    readdir: async (path) => (await names(path)).map(({ name }) => name),
    readdirWithFileTypes: async (path) =>
      (await names(path)).map(({ kind, name }) => ({
        name,
        isFile: kind === "file",
        isDirectory: kind === "directory",
        isSymbolicLink: kind === "link"
      })),
    rm: async (path, options) => {
      await request({ op: "remove", path, recursive: options?.recursive === true, force: options?.force === true })
    },
    cp: async (path, to, options) => {
      changes(to)
      await request({ op: "copy", path, to, recursive: options?.recursive === true })
    },
    mv: async (path, to) => {
      changes(to)
      await request({ op: "move", path, to })
    },
    resolvePath: (base, path) => {
      const target = unmarked(path)
      const resolved = resolve(unmarked(base).path, target.path)
      if (target.use === undefined) return resolved
      const place = markPath(target.use, resolved)
      targets.set(place, target.path)
      return place
    },
    getAllPaths: () => [],
    chmod: async (path, mode) => {
      await request({ op: "chmod", path, mode })
    },
    symlink: noLinks("symlink"),
    link: noLinks("link"),
    readlink: leading("readlink"),
    realpath: leading("realpath"),
    utimes: async (path) => {
      await request({ op: "stat", path })
    }
  }
  return { fs, complaints, treat }
}
