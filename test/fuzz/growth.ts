/** Measures how the cost of a piece of work grows with its input, by doubling. */

/** Work on an input of some size. */
export type Work = () => unknown

/** The shorter of two tries, in milliseconds of the clock: good enough to choose work for a closer look. */
const glance = (work: Work): number => {
  let least = Number.POSITIVE_INFINITY
  for (let count = 0; count < 2 && least > 0.5; count++) {
    const before = performance.now()
    work()
    least = Math.min(least, performance.now() - before)
  }
  return least
}

const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The CPU time of a thread is counted in steps of some milliseconds, so that it takes many times as much to measure. */
const enough = 40

/** The average time, in milliseconds of this thread's own: other work of the machine costs nothing. */
const measure = (work: Work): number => {
  const before = cpuMillis()
  for (let count = 1; ; count++) {
    work()
    const spent = cpuMillis() - before
    if (spent >= enough) return spent / count
  }
}

/** Below this, the compiler is measured, in milliseconds. */
const floor = 5

/** By how much it may grow when the input grows fourfold: n log n is below 5, n² is 16. */
const allowed = 9

/** Work that takes longer is too slow at any growth, in milliseconds. */
const ceiling = 2_000

/**
 * Measures well at three places, as a step is no growth, though two of them may lie around it; and again if that looks bad,
 * as the engine may have been at work.
 */
const closely = (prepare: (size: number) => Work, size: number): string | undefined => {
  let problem: string | undefined
  for (let count = 0; count < 3; count++) {
    const costs: Array<readonly [size: number, cost: number]> = []
    const cost = (at: number): number => {
      const found = measure(prepare(at))
      costs.push([at, found])
      return found
    }
    const [first, second, third] = [cost(size / 4), cost(size / 2), cost(size)]
    const isTooFast =
      third > allowed * first &&
      cost(size * 2) > allowed * second &&
      (third > ceiling || cost(size * 4) > allowed * third)
    if (third <= ceiling && !isTooFast) return undefined
    problem = costs.map(([at, cost]) => `${at}: ${cost.toFixed(2)} ms`).join(", ")
  }
  return problem
}

/** Reports a problem with the growth of some work. `prepare` makes the work for a size, and is not measured. The first work that seems to grow too fast is measured well. */
export const growth = (prepare: (size: number) => Work, most: number): string | undefined => {
  const glances: Array<number> = []
  for (let size = 512; size <= most; size *= 2) {
    const work = prepare(size)
    const before = glances.at(-2)
    const isFine = (took: number): boolean =>
      took <= floor || (took <= ceiling && took <= allowed * Math.max(before ?? took, floor / 16))
    let took = glance(work)
    // On a busy machine a second glance is cheaper than a closer look.
    for (let count = 0; count < 3 && !isFine(took); count++) took = Math.min(took, glance(work))
    glances.push(took)
    if (isFine(took)) continue
    return closely(prepare, size)
  }
  return undefined
}
