import { withMarks } from "../view/View.ts"
/** The files of a thread: a tree of folders, and a text. */
import type { Entry, FileText, Folder } from "./client.ts"
import { type Children, type Element, h, unseen } from "./element.ts"
import * as Format from "./format.ts"

/** The files as far as they were looked at. `folders` has the entries of open folders, and `undefined` while they load. */
export interface Files {
  readonly root: string
  readonly folders: ReadonlyMap<string, Folder | undefined>
  readonly file: { readonly path: string; readonly text: FileText | undefined } | undefined
}

interface Props {
  readonly files: Files
  /** The address at which the bytes of a file are. */
  readonly addressOf: (path: string) => string
  readonly onFolder: (path: string) => void
  readonly onFile: (path: string) => void
  readonly onMore: () => void
  readonly onList: () => void
  readonly onClose: () => void
}

const nameOf = (path: string): string => withMarks(path.split("/").findLast((part) => part !== "") ?? path)

/** Moves through the tree by the arrow keys: up and down, right opens a folder, left closes it or goes to its folder. */
const move = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void => {
  const { currentTarget: tree, key, target } = event
  if (!(target instanceof HTMLButtonElement)) return
  const all = [...tree.querySelectorAll<HTMLButtonElement>("button[data-path]")]
  const at = all.indexOf(target)
  const isOpen = target.getAttribute("aria-expanded")
  const step = { ArrowDown: 1, ArrowUp: -1 }[key]
  if (step !== undefined) all[at + step]?.focus()
  else if (key === "Home") all[0]?.focus()
  else if (key === "End") all.at(-1)?.focus()
  else if (key === "ArrowRight" && isOpen === "false") target.click()
  else if (key === "ArrowLeft" && isOpen === "true") target.click()
  else if (key === "ArrowLeft") target.closest("ul")?.parentElement?.querySelector("button")?.focus()
  else return
  event.preventDefault()
}

const row = ({ files, onFile, onFolder }: Props, { kind, path, size }: Entry): Element => {
  const isFolder = kind === "directory"
  const isShown = files.file?.path === path
  return h(
    "button",
    {
      type: "button",
      class: `plain entry ${isFolder ? "folder" : ""}`,
      "data-path": path,
      "aria-expanded": isFolder ? files.folders.has(path) : undefined,
      "aria-current": isShown ? "true" : undefined,
      onClick: () => (isFolder ? onFolder(path) : onFile(path))
    },
    h("span", { class: "name" }, nameOf(path)),
    isFolder ? unseen(" folder") : null,
    size === undefined || isFolder ? null : h("span", { class: "quiet" }, Format.bytes(size))
  )
}

const branch = (props: Props, folder: string): Children => {
  if (!props.files.folders.has(folder)) return null
  const listing = props.files.folders.get(folder)
  if (listing === undefined) return h("p", { class: "quiet", role: "status" }, "Loading")
  if (listing.entries.length === 0) return h("p", { class: "quiet" }, "Empty")
  return [
    h(
      "ul",
      null,
      listing.entries.map((entry) =>
        h("li", { key: entry.path }, row(props, entry), entry.kind === "directory" ? branch(props, entry.path) : null)
      )
    ),
    listing.isCut === true ? h("p", { class: "quiet" }, "This folder has more than is listed.") : null
  ]
}

const textOf = (text: FileText, onMore: () => void): Children => {
  if (text.kind === "binary") {
    return h("p", { class: "quiet" }, `This file is no text (${text.mimeType}). Download it to look at it.`)
  }
  return [
    h("pre", { tabIndex: 0, "aria-label": "Text of the file" }, withMarks(text.text)),
    text.endLine < text.totalLines || text.nextColumn !== undefined
      ? h("button", { type: "button", onClick: onMore }, `More (line ${text.endLine} of ${text.totalLines})`)
      : null
  ]
}

const drawFile = (props: Props): Element => {
  const { addressOf, files, onList, onMore } = props
  const { file } = files
  if (file === undefined) return h("div", { class: "file none quiet" }, "Choose a file.")
  const { path, text } = file
  return h(
    "section",
    { class: "file", "aria-label": withMarks(path) },
    h(
      "div",
      { class: "bar" },
      h("button", { type: "button", class: "plain narrow", onClick: onList }, "All files"),
      h("h2", { title: path }, nameOf(path)),
      text === undefined ? null : h("span", { class: "quiet" }, Format.bytes(text.size)),
      h("a", { href: addressOf(path), download: "" }, "Download", unseen(` ${nameOf(path)}`))
    ),
    text === undefined ? h("p", { class: "quiet", role: "status" }, "Loading") : textOf(text, onMore)
  )
}

/** Draws the files of a thread. */
export const drawFiles = (props: Props): Element => {
  const { files, onClose } = props
  return h(
    "div",
    { class: `files ${files.file === undefined ? "" : "has-file"}` },
    h(
      "section",
      { class: "folders", "aria-label": "Files", onKeyDown: move },
      h(
        "div",
        { class: "bar" },
        h("h2", null, "Files"),
        h("button", { type: "button", class: "plain", onClick: onClose }, "Back to the conversation")
      ),
      branch(props, files.root)
    ),
    drawFile(props)
  )
}
