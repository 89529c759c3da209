/** Items of a project that an agent would follow or run: each is read once, and trusted by its content. */
import { basename, dirname, join, relative, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { isObject, type Json } from "../../../core/Json.ts"
import { toJson } from "../../../support/json/jsonc.ts"
import { foldersOf } from "../project/folders.ts"
import { isInside, loadFile, names as instructionNames, readWithImports } from "../project/imports.ts"

/** A file of a skill. */
export interface SkillFile {
  readonly bytes: Uint8Array
  readonly isProgram: boolean
}

/** `text` is the whole content: it is shown, hashed and used. `gist` tells its effect on one line. */
export interface Item {
  readonly kind: string
  readonly name: string
  /** Relative to the folder of the project, or absolute for files above it. */
  readonly file: string
  readonly text: string
  readonly gist?: string | undefined
  /** The files of a skill, by their paths in its folder. */
  readonly files?: ReadonlyMap<string, SkillFile> | undefined
  /** Why it can't be trusted. */
  readonly problem?: string | undefined
}

/** The name of an item among all items of its project. */
export const idOf = ({ file, kind, name }: Item): string => `${kind} ${name} (${file})`

/** Limits of one item. */
const limits = { bytes: 1_000_000, skillBytes: 5_000_000, skillFiles: 200 } as const

/** Reads files of one folder. Links that lead out of it, and special files, are not there. */
export interface Reader {
  readonly bytes: (path: string) => Effect.Effect<Uint8Array | undefined>
  /** The text of a file; `undefined` if there is no such file, or if it is too large. */
  readonly text: (path: string) => Effect.Effect<string | undefined>
  /** The reason not to read a file; `undefined` if it is read, or is not there. */
  readonly problem: (path: string) => Effect.Effect<string | undefined>
  /** The names in a folder, sorted. */
  readonly names: (path: string) => Effect.Effect<ReadonlyArray<string>>
  readonly isFolder: (path: string) => Effect.Effect<boolean>
  readonly isProgram: (path: string) => Effect.Effect<boolean>
}

/** Makes a reader of a folder below the folder of a reader. */
const readerBelow = (folder: Reader, at: string): Reader => ({
  bytes: (path) => folder.bytes(join(at, path)),
  text: (path) => folder.text(join(at, path)),
  problem: (path) => folder.problem(join(at, path)),
  names: (path) => folder.names(join(at, path)),
  isFolder: (path) => folder.isFolder(join(at, path)),
  isProgram: (path) => folder.isProgram(join(at, path))
})

/** Makes a reader of a folder. */
export const readerOf = Effect.fnUntraced(function* (root: string) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* Effect.orElseSucceed(fs.realPath(root), () => root)
  /** The real path inside of the folder, with its facts. */
  const inside = (path: string) =>
    Effect.gen(function* () {
      const target = yield* fs.realPath(join(real, path))
      const isInside = target === real || target.startsWith(real.endsWith(sep) ? real : real + sep)
      return isInside ? { path: target, info: yield* fs.stat(target) } : undefined
    }).pipe(Effect.orElseSucceed(() => undefined))
  const bytes = Effect.fnUntraced(function* (path: string) {
    const file = yield* inside(path)
    if (file === undefined || file.info.type !== "File" || file.info.size > limits.skillBytes) return undefined
    return Option.getOrUndefined(yield* Effect.option(fs.readFile(file.path)))
  })
  return {
    bytes,
    text: (path) =>
      Effect.map(bytes(path), (read) =>
        read === undefined || read.length > limits.bytes ? undefined : new TextDecoder().decode(read)
      ),
    problem: (path) =>
      Effect.map(inside(path), (found) => {
        if (found === undefined) return undefined
        if (found.info.type !== "File") return "it is no regular file"
        return Number(found.info.size) > limits.bytes
          ? `it has ${found.info.size} bytes, and at most ${limits.bytes} are read`
          : undefined
      }),
    names: (path) =>
      Effect.flatMap(inside(path), (found) =>
        found?.info.type === "Directory"
          ? Effect.orElseSucceed(
              Effect.map(fs.readDirectory(found.path), (names) => names.toSorted()),
              () => []
            )
          : Effect.succeed([])
      ),
    isFolder: (path) => Effect.map(inside(path), (found) => found?.info.type === "Directory"),
    isProgram: (path) => Effect.map(inside(path), (found) => ((found?.info.mode ?? 0) & 0o111) !== 0)
  } satisfies Reader
})

/** Finds the items of one kind. */
type Find = (folder: Reader) => Effect.Effect<ReadonlyArray<Item>>

const lines = (text: string): string => {
  const { length } = text.trimEnd().split("\n")
  return length === 1 ? "1 line" : `${length} lines`
}

/** A whole file as one item. */
const fileItem =
  (kind: string, file: string): Find =>
  (folder) =>
    Effect.gen(function* () {
      const text = yield* folder.text(file)
      if (text !== undefined) return [{ kind, name: file, file, text, gist: lines(text) }]
      const problem = yield* folder.problem(file)
      return problem === undefined ? [] : [{ kind, name: file, file, text: "", problem }]
    })

/** Each Markdown file below a folder as an item, by its path with colons: `ns/x.md` is `ns:x`. */
const markdownItems =
  (kind: string, at: string, depth: number): Find =>
  (folder) =>
    Effect.gen(function* () {
      const names = yield* folder.names(at)
      const files = names.filter((name) => name.endsWith(".md"))
      const results = yield* Effect.forEach(files, (name) => fileItem(kind, `${at}/${name}`)(folder))
      const items = results.flat().map((item) => ({ ...item, name: item.file.slice(at.length + 1, -3) }))
      const below = depth === 0 ? [] : names.filter((name) => /^[\w-]+$/.test(name))
      const nested = yield* Effect.forEach(below, (name) =>
        Effect.map(markdownItems(kind, `${at}/${name}`, depth - 1)(folder), (inside) =>
          inside.map((item) => ({ ...item, name: `${name}:${item.name}` }))
        )
      )
      return [...items, ...nested.flat()]
    })

const parseJson = (text: string): Json | undefined =>
  Result.getOrUndefined(Result.try((): Json => JSON.parse(toJson(text))))

/** The command line or the address of a server. */
const gistOf = (entry: Json): string => {
  if (!isObject(entry)) return ""
  const { args, command, url } = entry
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === "string")
  return typeof url === "string" ? `connects to ${url}` : `runs ${words.join(" ")}`
}

/** Each server of a file as an item, whose text is a file with this server alone. */
const serverItems =
  (file: string): Find =>
  (folder) =>
    Effect.map(folder.text(file), (text) => {
      if (text === undefined) return []
      const kind = "MCP server"
      const json = parseJson(text)
      if (!isObject(json)) return [{ kind, name: "*", file, text }]
      return ["mcpServers", "servers"].flatMap((key) => {
        const listed = json[key]
        return Object.entries(isObject(listed) ? listed : {}).map(([name, entry]): Item => {
          const inputs = JSON.stringify(entry).includes("${input:") ? { inputs: json["inputs"] ?? [] } : {}
          const alone = JSON.stringify({ [key]: { [name]: entry }, ...inputs }, null, 2)
          return { kind, name, file, text: alone, gist: gistOf(entry) }
        })
      })
    })

/** One hook as an item, whose text is a file with this hook alone. */
const hookItem = (file: string, event: string, matcher: Json | undefined, entry: Json): Item => {
  const alone = { hooks: { [event]: [{ ...(matcher === undefined ? {} : { matcher }), hooks: [entry] }] } }
  const { command, path, url } = isObject(entry) ? entry : {}
  const act =
    typeof command === "string"
      ? `runs ${command}`
      : typeof path === "string"
        ? `runs the module ${path}`
        : `posts to ${typeof url === "string" ? url : "no address"}`
  const name = [event, matcher, command ?? url ?? path].filter((part) => typeof part === "string").join(" ")
  return { kind: "hook", name, file, text: JSON.stringify(alone, null, 2), gist: act }
}

/** Each hook of a file as an item. The module of a hook, a path from the folder, is part of it. */
const hookItems =
  (file: string): Find =>
  (folder) =>
    Effect.gen(function* () {
      const text = yield* folder.text(file)
      const json = text === undefined ? undefined : parseJson(text)
      const events = isObject(json) && isObject(json["hooks"]) ? json["hooks"] : {}
      const items: Array<Item> = []
      for (const [event, groups] of Object.entries(events)) {
        for (const group of Array.isArray(groups) ? groups : []) {
          const { hooks, matcher } = isObject(group) ? group : {}
          for (const entry of Array.isArray(hooks) ? hooks : []) {
            const item = hookItem(file, event, matcher, entry)
            const path = isObject(entry) && entry["type"] === "module" ? entry["path"] : undefined
            if (typeof path !== "string") {
              items.push(item)
              continue
            }
            const bytes = yield* folder.bytes(path)
            if (bytes === undefined) items.push({ ...item, problem: `there is no ${path} in the folder` })
            else {
              const files = new Map([[basename(path), { bytes, isProgram: false }]])
              items.push({ ...item, files, text: `${item.text}\n── ${path}\n${shownText(bytes)}` })
            }
          }
        }
      }
      return items
    })

/** The rules for calls of a file as one item, whose text is a file with these rules alone. */
const permissionItems =
  (file: string): Find =>
  (folder) =>
    Effect.map(folder.text(file), (text) => {
      const json = text === undefined ? undefined : parseJson(text)
      const permissions = isObject(json) ? json["permissions"] : undefined
      if (!isObject(permissions)) return []
      const rules = ["allow", "ask", "deny"].flatMap((list) => {
        const entries = permissions[list]
        return (Array.isArray(entries) ? entries : []).map((rule) => `${list} ${String(rule)}`)
      })
      const gist = rules.join(", ")
      return [{ kind: "permissions", name: file, file, text: JSON.stringify({ permissions }, null, 2), gist }]
    })

/** The command of the status line of a file as one item, whose text is a file with this command alone. */
const statusLineItems =
  (file: string): Find =>
  (folder) =>
    Effect.map(folder.text(file), (text) => {
      const json = text === undefined ? undefined : parseJson(text)
      const statusLine = isObject(json) ? json["statusLine"] : undefined
      if (!isObject(statusLine)) return []
      const gist = gistOf(statusLine)
      return [{ kind: "status line", name: file, file, text: JSON.stringify({ statusLine }, null, 2), gist }]
    })

/** A text as it is, other bytes in base64. */
const shownText = (bytes: Uint8Array): string => {
  const text = new TextDecoder().decode(bytes)
  return /[\uFFFD\0]/.test(text) ? `(base64) ${Buffer.from(bytes).toString("base64")}` : text
}

/** All files as one text. */
const shownFiles = (files: ReadonlyMap<string, SkillFile>): string =>
  [...files]
    .map(
      ([path, { bytes, isProgram }]) =>
        `── ${path}, ${bytes.length} bytes${isProgram ? ", a program" : ""}\n${shownText(bytes)}`
    )
    .join("\n")

/** Reads a folder with all below it. `undefined` if it has too much. */
export const readTree = Effect.fnUntraced(function* (folder: Reader, at: string) {
  const files = new Map<string, SkillFile>()
  let size = 0
  const open = [at]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    for (const name of yield* folder.names(path)) {
      const file = `${path}/${name}`
      if (yield* folder.isFolder(file)) {
        // A link to a folder above would never end.
        if (file.split("/").length < at.split("/").length + 8) open.push(file)
        continue
      }
      const bytes = yield* folder.bytes(file)
      if (bytes === undefined) continue
      size += bytes.length
      if (size > limits.skillBytes || files.size >= limits.skillFiles) return undefined
      files.set(relative(at, file), { bytes, isProgram: yield* folder.isProgram(file) })
    }
  }
  return new Map([...files].toSorted(([left], [right]) => (left < right ? -1 : 1)))
})

/** The modules of a skill with its tools: the first one counts. */
const toolModules = ["tools.ts", "tools.mts", "tools.js", "tools.mjs"]

/** The tools of a skill as an item of their own: they are code, as an extension is. */
const skillToolItems = (skill: Item, files: ReadonlyMap<string, SkillFile>): ReadonlyArray<Item> => {
  const module = toolModules.find((name) => files.has(name))
  const content = module === undefined ? undefined : files.get(module)
  if (module === undefined || content === undefined) return []
  return [
    {
      kind: "extension",
      name: `${skill.name}/${module}`,
      file: `${skill.file}/${module}`,
      files: new Map([[module, content]]),
      text: shownText(content.bytes),
      gist: `runs code, the tools of the skill ${skill.name}`
    }
  ]
}

/** Each skill of a folder as an item, with all its files, and another item for its tools. */
const skillItems =
  (at: string): Find =>
  (folder) =>
    Effect.gen(function* () {
      const items: Array<Item> = []
      for (const name of yield* folder.names(at)) {
        const file = `${at}/${name}`
        if (!(yield* folder.isFolder(file))) continue
        const files = yield* readTree(folder, file)
        const item = { kind: "skill", name, file }
        if (files === undefined) {
          const problem = `it has more than ${limits.skillFiles} files, or more than 5 MB`
          items.push({ ...item, text: "", problem })
        } else if (files.has("SKILL.md")) {
          items.push({ ...item, files, text: shownFiles(files), gist: `${files.size} files` })
          items.push(...skillToolItems({ ...item, text: "" }, files))
        }
      }
      return items
    })

/** Each extension of a folder as an item, with all its files: a file of code, or a folder. */
const extensionItems =
  (at: string): Find =>
  (folder) =>
    Effect.gen(function* () {
      const items: Array<Item> = []
      for (const name of yield* folder.names(at)) {
        const file = `${at}/${name}`
        const item = { kind: "extension", name, file }
        if (yield* folder.isFolder(file)) {
          const files = yield* readTree(folder, file)
          if (files === undefined) {
            items.push({ ...item, text: "", problem: `it has more than ${limits.skillFiles} files, or more than 5 MB` })
          } else items.push({ ...item, files, text: shownFiles(files), gist: `runs code, ${files.size} files` })
        } else if (/\.[mc]?[jt]s$/.test(name)) {
          const bytes = yield* folder.bytes(file)
          if (bytes === undefined) continue
          const files = new Map([[name, { bytes, isProgram: false }]])
          items.push({ ...item, files, text: shownText(bytes), gist: "runs code" })
        }
      }
      return items
    })

/** Each script of a folder as an item. Listing it runs nothing. */
const workflowItems =
  (at: string): Find =>
  (folder) =>
    Effect.gen(function* () {
      const names = yield* folder.names(at)
      const files = names.filter((name) => /\.m?[jt]s$/.test(name) && !name.endsWith(".d.ts"))
      const items = yield* Effect.forEach(files, (name) => fileItem("workflow", `${at}/${name}`)(folder))
      return items.flat().map((item) => ({ ...item, gist: `runs agents, ${lines(item.text)}` }))
    })

/** Items of the working folder and of those above it. Of two with one name, the later one counts. */
const shared: ReadonlyArray<Find> = [
  markdownItems("agent", ".claude/agents", 0),
  markdownItems("agent", ".deepagents/agents", 0),
  markdownItems("command", ".claude/commands", 3),
  markdownItems("command", ".deepagents/commands", 3),
  hookItems(".claude/settings.json"),
  hookItems(".claude/settings.local.json"),
  hookItems(".deepagents/hooks.json"),
  permissionItems(".claude/settings.json"),
  permissionItems(".claude/settings.local.json"),
  skillItems(".claude/skills"),
  skillItems(".agents/skills"),
  skillItems(".deepagents/skills"),
  workflowItems(".claude/workflows"),
  workflowItems(".deepagents/workflows")
]

/** Items of the working folder alone. */
const own: ReadonlyArray<Find> = [
  fileItem("settings", ".deepagents/config.json"),
  fileItem("policy", ".deepagents/policy.yaml"),
  fileItem("memory", ".deepagents/agent.md"),
  statusLineItems(".claude/settings.json"),
  statusLineItems(".claude/settings.local.json"),
  serverItems(".cursor/mcp.json"),
  serverItems(".vscode/mcp.json"),
  serverItems(".mcp.json"),
  extensionItems(".deepagents/extensions")
]

/** Instruction files with their imports as items. */
const instructionItems = Effect.fnUntraced(function* (root: string, folders: ReadonlyArray<string>, working: string) {
  const { files } = yield* readWithImports(
    folders.flatMap((folder) => instructionNames.map((name) => join(folder, name))),
    (real) => loadFile(real, isInside(root, real))
  )
  return files.map(({ importer, path, text }): Item => {
    const file = isInside(working, path) ? relative(working, path) : path
    const gist = importer === undefined ? lines(text) : `${lines(text)}, imported by ${importer}`
    return { kind: "instructions", name: file, file, text, gist }
  })
})

/** Reads all items of a project, once: of its folder, and of the folders above it up to the root of the repository. */
export const findItems = Effect.fnUntraced(function* (project: string) {
  const folders = yield* foldersOf(project)
  const working = folders.at(-1) ?? project
  const root = folders[0] ?? project
  const reader = yield* readerOf(root)
  const results = yield* Effect.forEach(folders, (folder) => {
    const here = readerBelow(reader, relative(root, folder))
    const isWorking = folder === working
    return Effect.map(
      Effect.forEach(isWorking ? [...own, ...shared] : shared, (find) => find(here), { concurrency: 4 }),
      (items) => items.flat().map((item) => (isWorking ? item : { ...item, file: join(folder, item.file) }))
    )
  })
  return [...(yield* instructionItems(root, folders, working)), ...results.flat()]
})

/** The trusted items of a project. Nothing else of it is read. */
export interface Project {
  readonly items: ReadonlyArray<Item>
  /** Items that are left out. */
  readonly left: ReadonlyArray<Item>
}

export const noProject: Project = { items: [], left: [] }

/** The trusted items of a kind. */
export const itemsOf = ({ items }: Project, kind: string): ReadonlyArray<Item> =>
  items.filter((item) => item.kind === kind)

/** The folders of skills, relative to the folder of the frozen ones. */
export const skillFolders = (project: Project): ReadonlyArray<string> => [
  ...new Set(itemsOf(project, "skill").map(({ file }) => dirname(file)))
]
