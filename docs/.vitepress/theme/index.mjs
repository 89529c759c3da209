/** The theme of the site: VitePress's own, with a button that copies a page as Markdown. */
import { useData, withBase } from "vitepress"
import DefaultTheme from "vitepress/theme"
import { h, onMounted, ref, watch } from "vue"

const CopyPage = {
  setup() {
    const { page } = useData()
    const label = ref("Copy page")
    const copy = async () => {
      const response = await fetch(withBase(`/markdown/${page.value.relativePath}`))
      await navigator.clipboard.writeText(await response.text())
      label.value = "Copied"
      setTimeout(() => (label.value = "Copy page"), 2000)
    }
    return () => h("button", { class: "copy-page", type: "button", onClick: copy }, label.value)
  }
}

const Layout = {
  setup() {
    const { frontmatter } = useData()
    // The home page of the default theme has no main landmark.
    const mark = () => {
      const content = document.querySelector(".VPContent")
      if (frontmatter.value.layout === "home") content?.setAttribute("role", "main")
      else content?.removeAttribute("role")
    }
    onMounted(mark)
    watch(frontmatter, () => typeof document !== "undefined" && mark())
    return () => h(DefaultTheme.Layout, null, { "doc-before": () => h(CopyPage) })
  }
}

export default { extends: DefaultTheme, Layout }
