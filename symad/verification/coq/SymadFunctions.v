(** The functions of symad's table of derivatives, and the derivative of each as a lemma.

    Functions that the Coq library lacks are defined here; a lemma [d_f] says what the derivative of f
    is, and on which domain. *)

Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** ** Definitions *)

Definition sec (x : R) : R := / cos x.
Definition csc (x : R) : R := / sin x.
Definition cot (x : R) : R := cos x / sin x.
Definition sech (x : R) : R := / cosh x.
Definition csch (x : R) : R := / sinh x.
Definition coth (x : R) : R := cosh x / sinh x.
Definition acosh (x : R) : R := ln (x + sqrt (x ^ 2 - 1)).
Definition atanh (x : R) : R := ln ((1 + x) / (1 - x)) / 2.
Definition acot (x : R) : R := atan (/ x).
Definition sigmoid (x : R) : R := / (1 + exp (- x)).
Definition softplus (x : R) : R := ln (1 + exp x).
Definition logcosh (x : R) : R := ln (cosh x).
Definition silu (x : R) : R := x * sigmoid x.
Definition log1p (x : R) : R := ln (1 + x).
Definition expm1 (x : R) : R := exp x - 1.
Definition log2 (x : R) : R := ln x / ln 2.
Definition log10 (x : R) : R := ln x / ln 10.
Definition exp2 (x : R) : R := Rpower 2 x.
Definition logaddexp (x y : R) : R := ln (exp x + exp y).
Definition hypot (x y : R) : R := sqrt (x ^ 2 + y ^ 2).
Definition xlogy (x y : R) : R := x * ln y.
Definition erf (x : R) : R := 2 / sqrt PI * RInt (fun t => exp (- t ^ 2)) 0 x.
Definition erfc (x : R) : R := 1 - erf x.
Definition erfi (x : R) : R := 2 / sqrt PI * RInt (fun t => exp (t ^ 2)) 0 x.
Definition fresnels (x : R) : R := RInt (fun t => sin (PI * t ^ 2 / 2)) 0 x.
Definition fresnelc (x : R) : R := RInt (fun t => cos (PI * t ^ 2 / 2)) 0 x.
Definition heaviside (x : R) : R := (1 + sign x) / 2.

(** 1 where x < y, else 0; branches are written with it. *)
Definition less (x y : R) : R := if Rlt_dec x y then 1 else 0.
Definition equal (x y : R) : R := if Req_EM_T x y then 1 else 0.
Definition floor (x : R) : R := IZR (Int_part x).
Definition ceiling (x : R) : R := - floor (- x).

(** ** Signs *)

Lemma cosh_pos x : 0 < cosh x.
Proof. unfold cosh. generalize (exp_pos x) (exp_pos (- x)). lra. Qed.

Lemma cosh_sinh x : cosh x ^ 2 - sinh x ^ 2 = 1.
Proof.
  unfold cosh, sinh. assert (E : exp x * exp (- x) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  nra.
Qed.

Lemma sech_opp x : sech (- x) = sech x.
Proof. unfold sech, cosh. now rewrite Ropp_involutive, Rplus_comm. Qed.

Lemma tanh_opp x : tanh (- x) = - tanh x.
Proof. unfold tanh, sinh, cosh. rewrite Ropp_involutive. field. generalize (exp_pos x) (exp_pos (- x)). lra. Qed.

(** Coq's ln is 0 where its argument is not positive. *)
Lemma ln_inv x : ln (/ x) = - ln x.
Proof.
  destruct (Rlt_dec 0 x) as [P|N]; [now apply ln_Rinv|].
  assert (Z : forall y, ~ 0 < y -> ln y = 0) by (intros y H; unfold ln; destruct (Rlt_dec 0 y); [contradiction | easy]).
  rewrite (Z x N), Z; [ring|]. intros H. apply N. rewrite <- Rinv_inv. now apply Rinv_0_lt_compat.
Qed.

Lemma sinh_neq_0 x : x <> 0 -> sinh x <> 0.
Proof.
  intros Hx H. apply Hx. unfold sinh in H.
  assert (E : exp x = exp (- x)) by lra. apply exp_inv in E. lra.
Qed.

Lemma sech_pos x : 0 < sech x.
Proof. apply Rinv_0_lt_compat, cosh_pos. Qed.

Lemma sigmoid_pos x : 0 < sigmoid x.
Proof. apply Rinv_0_lt_compat. generalize (exp_pos (- x)). lra. Qed.

Lemma softplus_pos x : 0 < softplus x.
Proof. unfold softplus. rewrite <- ln_1. apply ln_increasing; generalize (exp_pos x); lra. Qed.

(** ** Relations between generators *)

Lemma sech_square x : sech x ^ 2 = 1 - tanh x ^ 2.
Proof.
  unfold sech, tanh. generalize (cosh_pos x) (cosh_sinh x). intros P Q.
  field_simplify; [|lra..]. f_equal. lra.
Qed.

Lemma csch_square x : x <> 0 -> csch x ^ 2 = coth x ^ 2 - 1.
Proof.
  intros H. unfold csch, coth. generalize (sinh_neq_0 x H) (cosh_sinh x). intros P Q.
  field_simplify; [|lra..]. f_equal. lra.
Qed.

Lemma sec_square x : cos x <> 0 -> sec x ^ 2 = 1 + tan x ^ 2.
Proof.
  intros H. unfold sec, tan. generalize (sin2_cos2 x). unfold Rsqr. intros Q.
  field_simplify; [|lra..]. f_equal. lra.
Qed.

Lemma sin_square x : sin x ^ 2 = 1 - cos x ^ 2.
Proof. generalize (sin2_cos2 x). unfold Rsqr. lra. Qed.

Lemma sigmoid_tanh x : sigmoid x = (1 + tanh (x * / 2)) * / 2.
Proof.
  unfold sigmoid, tanh, sinh, cosh. generalize (exp_pos (x * / 2)). intros P.
  replace (- x) with (- (x * / 2) + - (x * / 2)) by field. rewrite exp_plus, !exp_Ropp.
  field. repeat split; nra.
Qed.

Lemma tanh_half x : tanh (x * / 2) = 2 * sigmoid x - 1.
Proof. rewrite sigmoid_tanh. field. Qed.

Lemma sech_half x : sech (x * / 2) ^ 2 = 4 * sigmoid x * (1 - sigmoid x).
Proof. rewrite sech_square, tanh_half. ring. Qed.

(** With w = 1/(1 + e): e w = 1 − w. *)
Lemma logistic_relation x : exp x * / (1 + exp x) = 1 - / (1 + exp x).
Proof. generalize (exp_pos x). intros P. field. lra. Qed.

Lemma sigmoid_opp x : sigmoid (- x) = 1 - sigmoid x.
Proof.
  unfold sigmoid. rewrite Ropp_involutive, exp_Ropp. generalize (exp_pos x). intros P.
  field. repeat split; lra.
Qed.

(** ** Derivatives

    The form of each is the one that symad's table has. *)

Lemma d_inv x : x <> 0 -> is_derive Rinv x (- (/ x) ^ 2).
Proof. intros H. auto_derive; [assumption | field; assumption]. Qed.

Lemma d_exp x : is_derive exp x (exp x).
Proof. apply is_derive_exp. Qed.

Lemma d_log x : 0 < x -> is_derive ln x (/ x).
Proof. apply is_derive_ln. Qed.

Lemma d_sqrt x : 0 < x -> is_derive sqrt x (/ (2 * sqrt x)).
Proof. intros H. auto_derive; [assumption | field; generalize (sqrt_lt_R0 x H); lra]. Qed.

Lemma d_sin x : is_derive sin x (cos x).
Proof. apply is_derive_sin. Qed.

Lemma d_cos x : is_derive cos x (- sin x).
Proof. apply is_derive_cos. Qed.

Lemma d_tan x : cos x <> 0 -> is_derive tan x (1 + tan x ^ 2).
Proof. intros H. evar_last. now apply is_derive_tan. simpl. ring. Qed.

Lemma d_sec x : cos x <> 0 -> is_derive sec x (tan x * sec x).
Proof. intros H. unfold sec, tan. auto_derive; [assumption | field; assumption]. Qed.

Lemma d_csc x : sin x <> 0 -> is_derive csc x (- cot x * csc x).
Proof. intros H. unfold csc, cot. auto_derive; [assumption | field; assumption]. Qed.

Lemma d_cot x : sin x <> 0 -> is_derive cot x (- cot x ^ 2 - 1).
Proof.
  intros H. unfold cot. auto_derive; [assumption |].
  generalize (sin2_cos2 x). unfold Rsqr. intros E. field_simplify_eq; [|assumption]. lra.
Qed.

Lemma is_derive_lim f x l : derivable_pt_lim f x l -> is_derive f x l.
Proof. apply is_derive_Reals. Qed.

Lemma d_sinh x : is_derive sinh x (cosh x).
Proof. apply is_derive_lim, derivable_pt_lim_sinh. Qed.

Lemma d_cosh x : is_derive cosh x (sinh x).
Proof. apply is_derive_lim, derivable_pt_lim_cosh. Qed.

Lemma d_tanh x : is_derive tanh x (1 - tanh x ^ 2).
Proof.
  unfold tanh. generalize (cosh_pos x) (cosh_sinh x). intros P Q.
  evar_last. apply is_derive_div; [apply d_sinh | apply d_cosh | lra].
  unfold Rsqr. field. lra.
Qed.

Lemma d_tanh_by_sech x : is_derive tanh x (sech x ^ 2).
Proof. rewrite sech_square. apply d_tanh. Qed.

Lemma d_sech x : is_derive sech x (- tanh x * sech x).
Proof.
  unfold sech, tanh. generalize (cosh_pos x). intros P.
  evar_last. apply is_derive_inv; [apply d_cosh | lra]. unfold Rsqr. field. lra.
Qed.

Lemma d_csch x : x <> 0 -> is_derive csch x (- coth x * csch x).
Proof.
  intros H. unfold csch, coth. generalize (sinh_neq_0 x H). intros P.
  evar_last. apply is_derive_inv; [apply d_sinh | lra]. unfold Rsqr. field. lra.
Qed.

Lemma d_coth x : x <> 0 -> is_derive coth x (- csch x ^ 2).
Proof.
  intros H. unfold csch, coth. generalize (sinh_neq_0 x H) (cosh_sinh x). intros P Q.
  evar_last. apply is_derive_div; [apply d_cosh | apply d_sinh | lra].
  unfold Rsqr. field_simplify_eq; [|lra]. lra.
Qed.

Lemma d_asin x : -1 < x < 1 -> is_derive asin x (/ sqrt (1 - x ^ 2)).
Proof.
  intros H. apply is_derive_Reals. rewrite <- Rsqr_pow2.
  replace (/ sqrt (1 - Rsqr x)) with (derive_pt asin x (derivable_pt_asin x H))
    by (rewrite derive_pt_asin; unfold Rdiv; ring).
  apply derive_pt_eq_1 with (pr := derivable_pt_asin x H). reflexivity.
Qed.

Lemma d_acos x : -1 < x < 1 -> is_derive acos x (- / sqrt (1 - x ^ 2)).
Proof.
  intros H. apply is_derive_Reals. rewrite <- Rsqr_pow2.
  replace (- / sqrt (1 - Rsqr x)) with (derive_pt acos x (derivable_pt_acos x H))
    by (rewrite derive_pt_acos; unfold Rdiv; ring).
  apply derive_pt_eq_1 with (pr := derivable_pt_acos x H). reflexivity.
Qed.

Lemma d_atan x : is_derive atan x (/ (x ^ 2 + 1)).
Proof.
  evar_last. apply is_derive_atan. simpl. unfold Rsqr. f_equal. ring.
Qed.

Lemma d_acot x : x <> 0 -> is_derive acot x (- / (x ^ 2 + 1)).
Proof.
  intros H. unfold acot. evar_last.
  apply (is_derive_comp atan Rinv); [apply d_atan | apply (d_inv x H)].
  unfold scal; simpl; unfold mult; simpl. field. split; [nra | assumption].
Qed.

Lemma d_asinh x : is_derive arcsinh x (/ sqrt (x ^ 2 + 1)).
Proof. apply is_derive_lim, derivable_pt_lim_arcsinh. Qed.

Lemma d_acosh x : 1 < x -> is_derive acosh x (/ (sqrt (x - 1) * sqrt (x + 1))).
Proof.
  intros H. assert (P : 0 < x ^ 2 - 1) by nra. assert (S := sqrt_lt_R0 _ P).
  rewrite <- sqrt_mult by lra. replace ((x - 1) * (x + 1)) with (x ^ 2 - 1) by ring.
  unfold acosh. evar_last.
  apply (is_derive_comp ln (fun x => x + sqrt (x ^ 2 - 1))); [apply is_derive_ln; lra|].
  apply (is_derive_plus (fun x : R => x) (fun x => sqrt (x ^ 2 - 1))); [apply (is_derive_id x)|].
  apply (is_derive_comp sqrt (fun x => x ^ 2 - 1)); [apply d_sqrt, P|].
  auto_derive; [easy | reflexivity].
  set (s := sqrt (x ^ 2 - 1)) in *. unfold scal, plus, one; simpl; unfold mult; simpl. field. lra.
Qed.

Lemma d_atanh x : -1 < x < 1 -> is_derive atanh x (/ (1 - x ^ 2)).
Proof.
  intros H. unfold atanh.
  auto_derive; [split; [lra | split; [|easy]]; apply Rmult_lt_0_compat; [|apply Rinv_0_lt_compat]; lra|].
  field. repeat split; nra.
Qed.

Lemma d_sigmoid x : is_derive sigmoid x (sigmoid x * (1 - sigmoid x)).
Proof.
  unfold sigmoid. generalize (exp_pos (- x)). intros P. auto_derive; [lra|]. field. lra.
Qed.

Lemma d_sigmoid_by_sech x : is_derive sigmoid x (sech (x * / 2) ^ 2 * / 4).
Proof.
  replace (sech (x * / 2) ^ 2 * / 4) with (sigmoid x * (1 - sigmoid x)); [apply d_sigmoid|].
  rewrite sech_square, sigmoid_tanh. field.
Qed.

Lemma d_softplus x : is_derive softplus x (sigmoid x).
Proof.
  unfold softplus, sigmoid. rewrite exp_Ropp. generalize (exp_pos x). intros P.
  auto_derive; [lra|]. field. repeat split; lra.
Qed.

Lemma d_logcosh x : is_derive logcosh x (tanh x).
Proof.
  unfold logcosh, tanh. generalize (cosh_pos x). intros P. evar_last.
  apply (is_derive_comp ln cosh); [apply is_derive_ln, P | apply d_cosh].
  unfold scal; simpl; unfold mult; simpl. field. lra.
Qed.

Lemma d_silu x : is_derive silu x (sigmoid x + silu x * sigmoid (- x)).
Proof.
  rewrite sigmoid_opp. unfold silu. evar_last.
  apply (is_derive_mult (fun t : R => t) sigmoid x 1); [apply (is_derive_id x) | apply d_sigmoid | exact Rmult_comm].
  unfold plus, mult; simpl. ring.
Qed.

Lemma d_log1p x : -1 < x -> is_derive log1p x (/ (x + 1)).
Proof. intros H. unfold log1p. auto_derive; [lra | field; lra]. Qed.

Lemma d_expm1 x : is_derive expm1 x (exp x).
Proof. unfold expm1. auto_derive; [easy | ring]. Qed.

Lemma ln_neq_0 a : 1 < a -> ln a <> 0.
Proof. intros H. rewrite <- ln_1. apply Rgt_not_eq, ln_increasing; lra. Qed.

Lemma d_log2 x : 0 < x -> is_derive log2 x (/ (x * ln 2)).
Proof.
  intros H. assert (P := ln_neq_0 2 ltac:(lra)). unfold log2. auto_derive; [lra|]. field. lra.
Qed.

Lemma d_log10 x : 0 < x -> is_derive log10 x (/ (x * ln 10)).
Proof.
  intros H. assert (P := ln_neq_0 10 ltac:(lra)). unfold log10. auto_derive; [lra|]. field. lra.
Qed.

Lemma d_exp2 x : is_derive exp2 x (ln 2 * exp2 x).
Proof. unfold exp2, Rpower. auto_derive; [easy | ring]. Qed.

Lemma d_abs x : x <> 0 -> is_derive Rabs x (sign x).
Proof.
  intros H. evar_last. apply (is_derive_Rabs (fun t : R => t) x 1); [apply (is_derive_id x) | assumption].
  simpl. ring.
Qed.

Lemma d_sign x : x <> 0 -> is_derive sign x 0.
Proof.
  intros H. apply (is_derive_ext_loc (fun _ => sign x)).
  - destruct (Rlt_le_dec x 0) as [N | P].
    + exists (mkposreal _ (Ropp_0_gt_lt_contravar x N)). intros y B. apply Rabs_def2 in B. simpl in B.
      unfold minus, plus, opp in B; simpl in B. rewrite !sign_eq_m1; lra.
    + assert (Q : 0 < x) by lra. exists (mkposreal _ Q). intros y B. apply Rabs_def2 in B. simpl in B.
      unfold minus, plus, opp in B; simpl in B. rewrite !sign_eq_1; lra.
  - apply @is_derive_const.
Qed.

(** Integrals. *)

Lemma d_integral (f : R -> R) (x : R) : (forall t, continuous f t) -> is_derive (fun x => RInt f 0 x) x (f x).
Proof.
  intros C. apply (is_derive_RInt f _ 0); [|apply C].
  exists (mkposreal 1 Rlt_0_1). intros y _. apply (RInt_correct (V := R_CompleteNormedModule)).
  apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply C.
Qed.

Lemma d_erf x : is_derive erf x (2 / sqrt PI * exp (- x ^ 2)).
Proof.
  unfold erf. apply (is_derive_scal (fun x => RInt (fun t => exp (- t ^ 2)) 0 x)).
  apply (d_integral (fun t => exp (- t ^ 2))). intros t.
  apply @ex_derive_continuous. auto_derive. easy.
Qed.

Lemma d_erfc x : is_derive erfc x (- (2 / sqrt PI) * exp (- x ^ 2)).
Proof.
  unfold erfc. evar_last.
  apply (is_derive_minus (fun _ => 1) erf x 0); [apply @is_derive_const | apply d_erf].
  unfold minus, plus, opp; simpl. ring.
Qed.

Lemma d_erfi x : is_derive erfi x (2 / sqrt PI * exp (x ^ 2)).
Proof.
  unfold erfi. apply (is_derive_scal (fun x => RInt (fun t => exp (t ^ 2)) 0 x)).
  apply (d_integral (fun t => exp (t ^ 2))). intros t.
  apply @ex_derive_continuous. auto_derive. easy.
Qed.

Lemma d_fresnels x : is_derive fresnels x (sin (PI * x ^ 2 / 2)).
Proof.
  apply (d_integral (fun t => sin (PI * t ^ 2 / 2))). intros t.
  apply @ex_derive_continuous. auto_derive. easy.
Qed.

Lemma d_fresnelc x : is_derive fresnelc x (cos (PI * x ^ 2 / 2)).
Proof.
  apply (d_integral (fun t => cos (PI * t ^ 2 / 2))). intros t.
  apply @ex_derive_continuous. auto_derive. easy.
Qed.

(** Two arguments, along a path. *)

Lemma d_product (u v : R -> R) (t du dv : R) :
  is_derive u t du -> is_derive v t dv -> is_derive (fun s => u s * v s) t (du * v t + u t * dv).
Proof. intros U V. exact (is_derive_mult u v t du dv U V Rmult_comm). Qed.

Lemma d_chain (f u : R -> R) (t df du : R) :
  is_derive f (u t) df -> is_derive u t du -> is_derive (fun s => f (u s)) t (df * du).
Proof. intros F U. evar_last. apply (is_derive_comp f u t df du F U). apply Rmult_comm. Qed.

Lemma d_sum (u v : R -> R) (t du dv : R) :
  is_derive u t du -> is_derive v t dv -> is_derive (fun s => u s + v s) t (du + dv).
Proof. intros U V. exact (is_derive_plus u v t du dv U V). Qed.

Lemma d_power (u v : R -> R) (t du dv : R) :
  0 < u t -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => Rpower (u s) (v s)) t
    (v t * (Rpower (u t) (v t) * / u t) * du + Rpower (u t) (v t) * ln (u t) * dv).
Proof.
  intros P U V. evar_last.
  apply (d_chain exp (fun s => v s * ln (u s))); [apply d_exp|].
  apply d_product; [exact V|]. apply (d_chain ln u); [apply (d_log _ P) | exact U].
  unfold Rpower. ring.
Qed.

Lemma d_logaddexp (u v : R -> R) (t du dv : R) :
  is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => logaddexp (u s) (v s)) t (sigmoid (u t - v t) * du + sigmoid (v t - u t) * dv).
Proof.
  intros U V. unfold logaddexp. assert (P := exp_pos (u t)). assert (Q := exp_pos (v t)). evar_last.
  apply (d_chain ln (fun s => exp (u s) + exp (v s))); [apply d_log; lra|].
  apply d_sum; (eapply d_chain; [apply d_exp | eassumption]).
  unfold sigmoid.
  replace (- (u t - v t)) with (v t + - u t) by ring. replace (- (v t - u t)) with (u t + - v t) by ring.
  rewrite !exp_plus, !exp_Ropp. field. repeat split; lra.
Qed.

Lemma d_hypot (u v : R -> R) (t du dv : R) :
  0 < u t ^ 2 + v t ^ 2 -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => hypot (u s) (v s)) t
    (u t * / hypot (u t) (v t) * du + v t * / hypot (u t) (v t) * dv).
Proof.
  intros P U V. unfold hypot. assert (S := sqrt_lt_R0 _ P). evar_last.
  apply (d_chain sqrt (fun s => u s ^ 2 + v s ^ 2)); [apply d_sqrt, P|].
  apply d_sum; apply is_derive_pow; eassumption.
  set (r := sqrt _) in *. simpl. field. lra.
Qed.

Lemma d_xlogy (u v : R -> R) (t du dv : R) :
  0 < v t -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => xlogy (u s) (v s)) t (ln (v t) * du + u t * / v t * dv).
Proof.
  intros P U V. unfold xlogy. evar_last.
  apply d_product; [exact U|]. apply (d_chain ln v); [apply (d_log _ P) | exact V]. simpl. ring.
Qed.

(** Steps and choices, away from their jumps. *)

Lemma d_heaviside x : x <> 0 -> is_derive heaviside x 0.
Proof.
  intros H. unfold heaviside, Rdiv. evar_last.
  apply (is_derive_mult (fun t => 1 + sign t) (fun _ => / 2) x 0 0);
    [| apply @is_derive_const | exact Rmult_comm].
  - evar_last. apply (is_derive_plus (fun _ => 1) sign x 0 0); [apply @is_derive_const | apply (d_sign _ H)].
    unfold plus; simpl. ring.
  - unfold plus, mult; simpl. ring.
Qed.

Lemma less_1 x y : x < y -> less x y = 1.
Proof. unfold less. destruct (Rlt_dec x y); [easy | lra]. Qed.

Lemma less_0 x y : y <= x -> less x y = 0.
Proof. unfold less. destruct (Rlt_dec x y); [lra | easy]. Qed.

(** An inequality u < v that holds at t holds at all points close to t. *)
Lemma less_nearby (u v : R -> R) (t du dv : R) :
  is_derive u t du -> is_derive v t dv -> u t < v t -> locally t (fun s => u s < v s).
Proof.
  intros U V H.
  assert (C : continuous (fun s => v s - u s) t).
  { apply (continuous_minus (V := R_NormedModule) v u);
      apply (ex_derive_continuous (V := R_NormedModule)); eexists; eassumption. }
  assert (P : 0 < v t - u t) by lra.
  generalize (C (fun z => 0 < z) (open_gt 0 (v t - u t) P)). unfold filtermap.
  apply filter_imp. intros s Hs. lra.
Qed.

Lemma d_less (u v : R -> R) (t du dv : R) :
  v t - u t <> 0 -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => less (u s) (v s)) t (0 * du + 0 * dv).
Proof.
  intros H U V. replace (0 * du + 0 * dv) with 0 by ring.
  destruct (Rtotal_order (u t) (v t)) as [L|[E|L]]; [|lra|].
  - apply (is_derive_ext_loc (fun _ => 1)); [|apply @is_derive_const].
    generalize (less_nearby u v t du dv U V L). apply filter_imp. intros s Hs. symmetry. now apply less_1.
  - apply (is_derive_ext_loc (fun _ => 0)); [|apply @is_derive_const].
    generalize (less_nearby v u t dv du V U L). apply filter_imp. intros s Hs. symmetry. apply less_0. lra.
Qed.

Lemma d_max (u v : R -> R) (t du dv : R) :
  u t - v t <> 0 -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => Rmax (u s) (v s)) t (less (v t) (u t) * du + less (u t) (v t) * dv).
Proof.
  intros H U V. destruct (Rtotal_order (u t) (v t)) as [L|[E|L]]; [|lra|].
  - rewrite (less_1 _ _ L), less_0 by lra. replace (0 * du + 1 * dv) with dv by ring.
    apply (is_derive_ext_loc v); [|exact V].
    generalize (less_nearby u v t du dv U V L). apply filter_imp. intros s Hs. rewrite Rmax_right; lra.
  - rewrite (less_1 _ _ L), less_0 by lra. replace (1 * du + 0 * dv) with du by ring.
    apply (is_derive_ext_loc u); [|exact U].
    generalize (less_nearby v u t dv du V U L). apply filter_imp. intros s Hs. rewrite Rmax_left; lra.
Qed.

Lemma d_min (u v : R -> R) (t du dv : R) :
  u t - v t <> 0 -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => Rmin (u s) (v s)) t (less (u t) (v t) * du + less (v t) (u t) * dv).
Proof.
  intros H U V. destruct (Rtotal_order (u t) (v t)) as [L|[E|L]]; [|lra|].
  - rewrite (less_1 _ _ L), less_0 by lra. replace (1 * du + 0 * dv) with du by ring.
    apply (is_derive_ext_loc u); [|exact U].
    generalize (less_nearby u v t du dv U V L). apply filter_imp. intros s Hs. rewrite Rmin_left; lra.
  - rewrite (less_1 _ _ L), less_0 by lra. replace (0 * du + 1 * dv) with dv by ring.
    apply (is_derive_ext_loc v); [|exact V].
    generalize (less_nearby v u t dv du V U L). apply filter_imp. intros s Hs. rewrite Rmin_right; lra.
Qed.

Lemma d_equal (u v : R -> R) (t du dv : R) :
  v t - u t <> 0 -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => equal (u s) (v s)) t (0 * du + 0 * dv).
Proof.
  intros H U V. replace (0 * du + 0 * dv) with 0 by ring.
  apply (is_derive_ext_loc (fun _ => 0)); [|apply @is_derive_const].
  assert (N : forall a b, a < b \/ b < a -> 0 = equal a b)
    by (intros a b E; unfold equal; destruct (Req_EM_T a b); lra).
  destruct (Rtotal_order (u t) (v t)) as [L|[E|L]]; [|lra|].
  - generalize (less_nearby u v t du dv U V L). apply filter_imp. intros s Hs. now apply N; left.
  - generalize (less_nearby v u t dv du V U L). apply filter_imp. intros s Hs. now apply N; right.
Qed.

Lemma d_floor x : x <> floor x -> is_derive floor x 0.
Proof.
  intros H. unfold floor, Int_part in H. rewrite minus_IZR in H. destruct (archimed x) as [A B].
  apply (is_derive_ext_loc (fun _ => floor x)); [|apply @is_derive_const].
  assert (L : locally x (fun y => IZR (up x) - 1 < y /\ y < IZR (up x))).
  { apply filter_and; [apply (open_gt (IZR (up x) - 1)) | apply (open_lt (IZR (up x)))]; lra. }
  generalize L. apply filter_imp. intros y [P Q]. unfold floor, Int_part. do 2 f_equal. apply tech_up; lra.
Qed.

Lemma d_ceiling x : x <> ceiling x -> is_derive ceiling x 0.
Proof.
  intros H. unfold ceiling in *. evar_last.
  apply (is_derive_opp (fun x => floor (- x)) x 0).
  - evar_last. apply (d_chain floor (fun x => - x) x 0 (-1)).
    + apply d_floor. lra.
    + auto_derive; [easy | ring].
    + ring.
  - unfold opp; simpl. ring.
Qed.
