/** Elements of the page. */
import { type ComponentChildren, h as make, type JSX } from "preact"

export type Element = JSX.Element
export type Children = ComponentChildren

/** Makes an element. */
export const h = <Tag extends keyof JSX.IntrinsicElements>(
  tag: Tag,
  props: (JSX.IntrinsicElements[Tag] & { readonly [data: `data-${string}`]: number | string | undefined }) | null,
  ...children: ReadonlyArray<Children>
): Element => make<object>(tag, props, ...children)

/** Makes an element of a component. */
export const use = <Props extends object>(
  component: (props: Props) => Element | null,
  props: Props & { readonly key?: number | string }
): Element => make<Props>(component, props)

/** A text that only a screen reader says. */
export const unseen = (text: string): Element => h("span", { class: "unseen" }, text)
