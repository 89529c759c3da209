/** The paths that a search gives, by the ignore files that were found on the way to them. */
import * as Path from "../files/path.ts"
import * as Ignore from "../glob/ignore.ts"

/** Says of the path of a file whether neither it nor a directory that it is in is ignored. `files`: text by folder. */
export const isListed = (files: ReadonlyMap<string, string>): ((path: string) => boolean) => {
  /** The rules of a folder; `undefined` for an ignored folder. They are cached, because each file needs them. */
  const rulesByFolder = new Map<string, Ignore.Ignore | undefined>()

  const rulesIn = (folder: string): Ignore.Ignore | undefined => {
    if (rulesByFolder.has(folder)) return rulesByFolder.get(folder)
    const above = folder === "/" ? Ignore.none : rulesIn(Path.parent(folder))
    const isHidden = above === undefined || (folder !== "/" && Ignore.isIgnored(above, folder, true))
    const text = files.get(folder)
    const rules = isHidden ? undefined : text === undefined ? above : Ignore.extend(above, folder, text)
    rulesByFolder.set(folder, rules)
    return rules
  }

  return (path) => {
    const rules = rulesIn(Path.parent(path))
    return rules !== undefined && !Ignore.isIgnored(rules, path, false)
  }
}
