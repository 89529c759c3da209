/** The work of `children/script.ts` for clients that have no agent: what was said, as pieces over time. */
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

/** Paragraphs of a bulk, as the scripted model streams them: a piece of at most 64 characters every 2 ms. */
const bulk = async (kilobytes, { piece, block }) => {
  for (let index = 0; index < kilobytes * 16; index++) {
    const text = `Paragraph ${index} of the *answer* has some words in it.`
    piece(text)
    await pause(2)
    block(text)
  }
}

/** Calls of a tool that lists a folder: all of a round, then their results. */
const calls = async (count, { block }) => {
  for (let index = 0; index < count; index++) {
    block(`● ls ${index % 2 === 0 ? "/" : "/."}  1 found`)
    if (index % 20 === 19) await pause(1)
  }
}

/** Does what a person says. */
export const answer = async (said, screen) => {
  screen.busy(true)
  const count = Number(/\d+/.exec(said)?.[0] ?? 10)
  if (said.startsWith("bulk")) await bulk(count, screen)
  else if (said.startsWith("calls")) await calls(count, screen)
  else if (said.startsWith("slow")) await new Promise(() => {})
  screen.busy(false)
}
