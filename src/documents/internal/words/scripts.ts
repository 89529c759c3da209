/** Writes superscripts and subscripts in plain characters: `10^(-6)`, `H_(2)O`. */
import type { Writer } from "../writer.ts"

/** Superscript, subscript, or neither. */
export type Script = "^" | "_" | ""

/** Writes texts with their script. Neighbours of the same script share brackets. */
export interface ScriptWriter {
  readonly text: (text: string, script: Script) => void
  /** Closes the brackets. */
  readonly close: () => void
}

export const makeScripts = (writer: Writer): ScriptWriter => {
  let current: Script = ""
  const close = () => {
    if (current !== "") writer.text(")")
    current = ""
  }
  return {
    text: (text, script) => {
      if (script !== current && (script === "" || text.trim() !== "")) {
        close()
        if (script !== "") writer.text(`${script}(`)
        current = script
      }
      writer.text(text)
    },
    close
  }
}
