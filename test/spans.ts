/** Spans that tests look into. */
import { Tracer } from "effect"

/** Makes a tracer that keeps its spans. */
export const makeSpanRecorder = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}
