/** Reads a body of lines, as it comes. */
import { badResponse, type Origin } from "./errors.ts"
import { largestEvent, tooLarge } from "./guardedFetch.ts"

/** Splits a body into lines. It searches only new bytes, so long lines stay cheap. A line too long for memory fails. */
export async function* linesOf(body: ReadableStream<Uint8Array> | null, origin: Origin): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let begun = ""
  for await (const chunk of body ?? []) {
    const lines = decoder.decode(chunk, { stream: true }).split("\n")
    const last = lines.pop() ?? ""
    for (const line of lines) {
      const whole = begun + line
      begun = ""
      if (whole.trim() !== "") yield whole
    }
    begun += last
    if (begun.length > largestEvent) await Promise.reject(badResponse(origin, tooLarge("a line", largestEvent)))
  }
  begun += decoder.decode()
  if (begun.trim() !== "") yield begun
}
