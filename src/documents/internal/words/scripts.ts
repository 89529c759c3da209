/** Raised and lowered text in plain characters: `10^(-6)`, `H_(2)O`. */
import type { Writer } from "../writer.ts"

/** A raised text, a lowered one, or neither. */
export type Script = "^" | "_" | ""

/** Writes texts with their script. Neighbours of one script share their brackets. */
export interface ScriptWriter {
  readonly text: (text: string, script: Script) => void
  /** Closes the brackets, as at the end of a paragraph. */
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
