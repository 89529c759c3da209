/** Files of plain text, in the place of which their text can stand. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { type FileBlock, text, type TextBlock } from "../../../core/Content.ts"
import { oneLine } from "../../../support/text/untrusted.ts"

const readable =
  /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|toml|sql|javascript|typescript|x-sh|(?:[\w.]+\+)?(?:json|xml))(?:;|$))/

const decoder = new TextDecoder("utf-8", { fatal: true })

/** The text of a file that is one, in its name's frame; `undefined` for everything else. */
export const textOfFile = ({ name, source }: FileBlock): TextBlock | undefined => {
  if (source.kind !== "base64" || !readable.test(source.mimeType.trim().toLowerCase())) return undefined
  const fileText = Result.flatMap(Base64.decode(source.data), (bytes) => Result.try(() => decoder.decode(bytes)))
  if (Result.isFailure(fileText) || fileText.success.includes("\0") || fileText.success.trim() === "") return undefined
  const title = oneLine(name ?? "").replaceAll('"', "'")
  return text(`<file${title === "" ? "" : ` name="${title}"`}>\n${fileText.success.trimEnd()}\n</file>`)
}
