/** Values of the `Browser` service. */
import type { Step } from "../computer/steps.ts"

/** A page as an accessibility tree with numbered elements (`[ref=e7]`). Numbers are valid until the next snapshot. */
export interface Snapshot {
  readonly url: string
  readonly title: string
  readonly tree: string
  /** Events since the last snapshot, such as dialogs and closed windows. Pages write parts of these texts. */
  readonly notes: ReadonlyArray<string>
  /** Addresses of the open tabs. */
  readonly tabs: ReadonlyArray<string>
  /** Index of the tab in the snapshot. */
  readonly shown: number
}

/** An action on a page. `ref` is the number of an element in the last snapshot. */
export type Action =
  | { readonly _tag: "Open"; readonly url: string }
  | { readonly _tag: "Back" }
  | { readonly _tag: "Click"; readonly ref: string }
  | { readonly _tag: "Hover"; readonly ref: string }
  | { readonly _tag: "Press"; readonly key: string; readonly ref: string | undefined }
  | { readonly _tag: "Type"; readonly ref: string; readonly text: string; readonly submit: boolean }
  | { readonly _tag: "Select"; readonly ref: string; readonly values: ReadonlyArray<string> }
  | { readonly _tag: "Upload"; readonly ref: string; readonly files: ReadonlyArray<Download> }
  | { readonly _tag: "ShowTab" | "CloseTab"; readonly index: number }
  | { readonly _tag: "Wait"; readonly text: string | undefined; readonly seconds: number }
  | { readonly _tag: "Screen"; readonly step: Step }

/** A file from or for a page. Pages choose the names of their files. */
export interface Download {
  readonly name: string
  readonly bytes: Uint8Array
}
