/** Time of processors in place of time by the clock: other programs of a busy machine lengthen the latter alone. */

/** The time that this thread has computed, in milliseconds. */
export const threadTime = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

/** The time that this thread computes for some work, in milliseconds. */
export const spentBy = (work: () => void): number => {
  const before = threadTime()
  work()
  return threadTime() - before
}
