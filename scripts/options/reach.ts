/**
 * Finds which shapes a public function checks its options by: those that its declaration names, or a declaration that it
 * names, in the files of its folder. Files are read as text, a declaration at a time.
 */
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** A declaration at the top of a file, or a name that an import or an export leads to. */
interface Target {
  readonly file: string
  /** Undefined for a whole module, imported as a namespace. */
  readonly name: string | undefined
}

interface Source {
  /** The text of each declaration. */
  readonly texts: ReadonlyMap<string, string>
  readonly imports: ReadonlyMap<string, Target>
}

/** Globs in strings look like comments, so only those at the beginning of a line are removed. */
const withoutComments = (text: string): string => text.replaceAll(/^\s*(?:\/\*[^]*?\*\/|\/\/.*$)/gm, "")

const readSource = (file: string): Source => {
  const texts = new Map<string, string>()
  const imports = new Map<string, Target>()
  if (!existsSync(file)) return { texts, imports }
  const text = withoutComments(readFileSync(file, "utf8"))
  const links = /^(?:import|export)\s+(?:\* as (\w+)|\{([^}]*)\})\s+from\s+"(\.[^"]*)"/gm
  for (const [, namespace, names = "", path = ""] of text.matchAll(links)) {
    const target = join(dirname(file), path)
    if (namespace !== undefined) imports.set(namespace, { file: target, name: undefined })
    for (const [, name = "", local = name] of names.matchAll(/(?:type )?(\w+)(?: as (\w+))?/g)) {
      imports.set(local, { file: target, name })
    }
  }
  const starts = [...text.matchAll(/^(?:export )?(?:const|function\*?|class|enum) (\w+)/gm)]
  for (const [index, { 1: name = "", index: start }] of starts.entries()) {
    texts.set(name, text.slice(start, starts[index + 1]?.index))
  }
  // `export { one as other }`
  for (const [, names = ""] of text.matchAll(/^export \{([^}]*)\}(?! from)/gm)) {
    for (const [, name = "", local = name] of names.matchAll(/(\w+)(?: as (\w+))?/g)) {
      if (local !== name) texts.set(local, name)
    }
  }
  return { texts, imports }
}

/** Makes a function that finds the names of the shapes that an exported name reaches in its folder. */
export const makeReach = (): ((file: string, name: string) => ReadonlySet<string>) => {
  const sources = new Map<string, Source>()
  const sourceOf = (file: string): Source => {
    const source = sources.get(file) ?? readSource(file)
    sources.set(file, source)
    return source
  }
  return (file, name) => {
    const [top = "", folder = ""] = file.split("/")
    const room = `${top}/${folder}/`
    const shapes = new Set<string>()
    const visited = new Set<string>()
    const visit = (at: string, declared: string): void => {
      if (!at.startsWith(room) || at.endsWith("/shapes.ts") || visited.has(`${at} ${declared}`)) return
      visited.add(`${at} ${declared}`)
      const { imports, texts } = sourceOf(at)
      const text = texts.get(declared)
      if (text === undefined) {
        const target = imports.get(declared)
        if (target?.name !== undefined) visit(target.file, target.name)
        return
      }
      for (const [, before, word = ""] of text.matchAll(/(?:(\w+)\.)?\b([a-zA-Z_]\w*)/g)) {
        if (before === "shapes") shapes.add(word)
        const space = before === undefined ? undefined : imports.get(before)
        if (space !== undefined && space.name === undefined) visit(space.file, word)
        if (before !== undefined && (texts.has(before) || imports.get(before)?.name !== undefined)) visit(at, before)
        if (before === undefined && (texts.has(word) || imports.has(word))) visit(at, word)
      }
    }
    visit(file, name)
    return shapes
  }
}
