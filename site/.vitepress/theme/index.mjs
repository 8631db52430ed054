import { useRoute } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { nextTick, onMounted, watch } from "vue";
import "./contrast.css";

export default {
  extends: DefaultTheme,
  setup() {
    const route = useRoute();
    // The theme's first page has no landmark for its main part, which screen readers go to.
    const markMain = () => nextTick(() => document.querySelector(".VPHome")?.setAttribute("role", "main"));
    onMounted(() => watch(() => route.path, markMain, { immediate: true }));
  },
};
