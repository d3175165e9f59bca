(** The relations between functions on which normal forms rest, with their side conditions. *)

Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions.
Open Scope R_scope.

Lemma r_exp_sum a b : exp (a + b) = exp a * exp b.
Proof. apply exp_plus. Qed.

Lemma r_exp_opposite a : exp (- a) = / exp a.
Proof. apply exp_Ropp. Qed.

Lemma r_exp_multiple a n : exp (INR n * a) = exp a ^ n.
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IH. simpl. ring.
Qed.

Lemma r_log_exp a : ln (exp a) = a.
Proof. apply ln_exp. Qed.

Lemma r_exp_log a : 0 < a -> exp (ln a) = a.
Proof. apply exp_ln. Qed.

Lemma r_log_product a b : 0 < a -> 0 < b -> ln (a * b) = ln a + ln b.
Proof. apply ln_mult. Qed.

Lemma r_log_quotient a b : 0 < a -> 0 < b -> ln (a / b) = ln a - ln b.
Proof. intros A B. unfold Rdiv. rewrite ln_mult, ln_Rinv; try assumption; [ring | now apply Rinv_0_lt_compat]. Qed.

Lemma r_log_power a n : 0 < a -> ln (a ^ n) = INR n * ln a.
Proof. intros A. now apply ln_pow. Qed.

Lemma r_sqrt_square a : 0 <= a -> sqrt a ^ 2 = a.
Proof. apply pow2_sqrt. Qed.

Lemma r_sqrt_of_square a : sqrt (a ^ 2) = Rabs a.
Proof. rewrite <- Rsqr_pow2. apply sqrt_Rsqr_abs. Qed.

Lemma r_sqrt_product a b : 0 <= a -> 0 <= b -> sqrt (a * b) = sqrt a * sqrt b.
Proof. apply sqrt_mult. Qed.

Lemma r_sqrt_quotient a b : 0 <= a -> 0 < b -> sqrt (a / b) = sqrt a / sqrt b.
Proof. apply sqrt_div. Qed.

Lemma r_power_of_exp a b : 0 < a -> Rpower a b = exp (b * ln a).
Proof. reflexivity. Qed.

Lemma r_power_sum a b c : Rpower a (b + c) = Rpower a b * Rpower a c.
Proof. apply Rpower_plus. Qed.

Lemma r_power_power a b c : Rpower (Rpower a b) c = Rpower a (b * c).
Proof. apply Rpower_mult. Qed.

Lemma r_power_half a : 0 < a -> Rpower a (/ 2) = sqrt a.
Proof. apply Rpower_sqrt. Qed.

Lemma r_sin_sum a b : sin (a + b) = sin a * cos b + cos a * sin b.
Proof. apply sin_plus. Qed.

Lemma r_cos_sum a b : cos (a + b) = cos a * cos b - sin a * sin b.
Proof. apply cos_plus. Qed.

Lemma r_sin_opposite a : sin (- a) = - sin a.
Proof. apply sin_neg. Qed.

Lemma r_cos_opposite a : cos (- a) = cos a.
Proof. apply cos_neg. Qed.

Lemma r_pythagoras a : sin a ^ 2 + cos a ^ 2 = 1.
Proof. rewrite sin_square. ring. Qed.

Lemma r_tan a : tan a = sin a / cos a.
Proof. reflexivity. Qed.

Lemma r_sec_square a : cos a <> 0 -> sec a ^ 2 = 1 + tan a ^ 2.
Proof. apply sec_square. Qed.

Lemma r_hyperbolic_pythagoras a : cosh a ^ 2 - sinh a ^ 2 = 1.
Proof. apply cosh_sinh. Qed.

Lemma r_sinh_by_exp a : sinh a = (exp a - / exp a) / 2.
Proof. unfold sinh. now rewrite exp_Ropp. Qed.

Lemma r_cosh_by_exp a : cosh a = (exp a + / exp a) / 2.
Proof. unfold cosh. now rewrite exp_Ropp. Qed.

Lemma r_tanh_by_exp a : tanh a = (exp a ^ 2 - 1) / (exp a ^ 2 + 1).
Proof.
  unfold tanh. rewrite r_sinh_by_exp, r_cosh_by_exp. generalize (exp_pos a). intros P. field. split; nra.
Qed.

Lemma r_sech_square a : sech a ^ 2 = 1 - tanh a ^ 2.
Proof. apply sech_square. Qed.

Lemma r_csch_square a : a <> 0 -> csch a ^ 2 = coth a ^ 2 - 1.
Proof. apply csch_square. Qed.

Lemma r_sigmoid_by_tanh a : sigmoid a = (1 + tanh (a * / 2)) * / 2.
Proof. apply sigmoid_tanh. Qed.

Lemma r_sigmoid_opposite a : sigmoid (- a) = 1 - sigmoid a.
Proof. apply sigmoid_opp. Qed.

Lemma r_softplus_difference a : softplus a - softplus (- a) = a.
Proof.
  unfold softplus. rewrite exp_Ropp. generalize (exp_pos a). intros P.
  replace (1 + / exp a) with ((1 + exp a) / exp a) by (field; lra).
  rewrite r_log_quotient by lra. rewrite ln_exp. ring.
Qed.

Lemma r_erfc a : erf a + erfc a = 1.
Proof. unfold erfc. ring. Qed.

Lemma r_abs_square a : Rabs a ^ 2 = a ^ 2.
Proof. apply pow2_abs. Qed.

Lemma r_abs_by_sign a : Rabs a = sign a * a.
Proof.
  destruct (Rtotal_order a 0) as [H|[->|H]].
  - rewrite Rabs_left, sign_eq_m1 by assumption. ring.
  - rewrite Rabs_R0. ring.
  - rewrite Rabs_pos_eq, sign_eq_1 by lra. ring.
Qed.
