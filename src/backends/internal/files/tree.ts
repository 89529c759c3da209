/**
 * A tree of files in memory. A directory exists as long as it contains a file.
 *
 * Going to a path takes as many steps as it has names; listing a directory takes its children and nothing else.
 */
import * as Path from "./path.ts"

/** A directory by name. Maps, so that no name has a special meaning. */
export type Directory<A> = Map<string, Node<A>>

export type Node<A> = { readonly file: A } | { readonly children: Directory<A> }

export interface Tree<A> {
  readonly get: (path: string) => Node<A> | undefined
  /** Puts a file at a path. `false`: a parent is a file, or the path is a directory. */
  readonly put: (path: string, file: A) => boolean
  /** Removes an entry, and the directories that become empty. */
  readonly take: (path: string) => Node<A> | undefined
  /** Moves an entry with its content. Fails like `put`. */
  readonly move: (from: string, to: string) => boolean
}

export const make = <A>(): Tree<A> => {
  const root: Directory<A> = new Map()

  const get = (path: string): Node<A> | undefined => {
    let node: Node<A> = { children: root }
    for (const name of Path.segments(path)) {
      const next: Node<A> | undefined = "children" in node ? node.children.get(name) : undefined
      if (next === undefined) return undefined
      node = next
    }
    return node
  }

  /** Reports whether a path can hold a file: all parents are directories, and the path is none. */
  const fits = (path: string): boolean => {
    let node: Node<A> = { children: root }
    for (const name of Path.segments(path)) {
      if (!("children" in node)) return false
      const next = node.children.get(name)
      if (next === undefined) return true
      node = next
    }
    return !("children" in node)
  }

  const link = (path: string, node: Node<A>): void => {
    let directory = root
    for (const name of Path.segments(Path.parent(path))) {
      const child = directory.get(name)
      const next: Directory<A> = child !== undefined && "children" in child ? child.children : new Map()
      if (child === undefined) directory.set(name, { children: next })
      directory = next
    }
    directory.set(Path.basename(path), node)
  }

  const take = (path: string): Node<A> | undefined => {
    const node = get(path)
    if (node === undefined || path === "/") return undefined
    for (let at = path; at !== "/"; at = Path.parent(at)) {
      const above = get(Path.parent(at))
      if (above === undefined || !("children" in above)) break
      above.children.delete(Path.basename(at))
      if (above.children.size > 0) break
    }
    return node
  }

  return {
    get,
    put: (path, file) => {
      if (!fits(path)) return false
      link(path, { file })
      return true
    },
    take,
    move: (from, to) => {
      if (!fits(to) || Path.isWithin(to, from)) return false
      const node = take(from)
      if (node === undefined) return false
      link(to, node)
      return true
    }
  }
}
